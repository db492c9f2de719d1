//! Acts: all that is recorded, by the names that records have for them (`docs/FORMAT.md`).

/// Declares the acts, each with its name in records.
macro_rules! acts {
    ($($act:ident $name:literal,)*) => {
        /// Something that a subject, an administrator or the server does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Act { $($act,)* }

        /// The names of all acts, as records have them.
        pub(crate) const ACT_NAMES: &[&str] = &[$($name,)*];

        impl Act {
            /// Its name in records. Names that were released never change.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$act => $name,)* }
            }
        }
    };
}

acts! {
    ReadObject "object.read",
    HeadObject "object.head",
    ListObjects "object.list",
    WriteObject "object.write",
    DeleteObject "object.delete",
    CopyObject "object.copy",
    RenameObject "object.rename",
    ReadTags "tags.read",
    WriteTags "tags.write",
    ReadAcl "acl.read",
    WriteAcl "acl.write",
    WriteLock "lock.write",
    ReadConfiguration "configuration.read",
    WriteConfiguration "configuration.write",
    CreateUpload "upload.create",
    AbortUpload "upload.abort",
    EndUploads "upload.end",
    RunLifecycle "lifecycle.run",
    ListUploads "upload.list",
    WritePart "part.write",
    ListParts "part.list",
    UseBucket "bucket.use",
    ListBuckets "bucket.list",
    CreateBucket "bucket.create",
    DeleteBucket "bucket.delete",
    EraseBucket "bucket.erase",
    RotateBucket "bucket.rotate",
    AdoptBucket "bucket.adopt",
    CreateLevel "level.create",
    EraseLevel "level.erase",
    RotateLevel "level.rotate",
    ExportKey "key.export",
    ImportKey "key.import",
    KeystoreStatus "keystore.status",
    RotateKeystore "keystore.rotate",
    MoveKeystore "keystore.move",
    BackUpKeystore "keystore.backup",
    ListRotations "rotation.list",
    EndRotation "rotation.end",
    CreateSubject "subject.create",
    ChangeSubject "subject.change",
    RenameSubject "subject.rename",
    DisableSubject "subject.disable",
    EnableSubject "subject.enable",
    DeleteSubject "subject.delete",
    SettleSubject "subject.settle",
    RaiseSubject "subject.raise",
    SetQuota "quota.set",
    RemoveQuota "quota.remove",
    ListQuotas "quota.list",
    CreateAccessKey "access-key.create",
    ChangeAccessKey "access-key.change",
    DisableAccessKey "access-key.disable",
    EnableAccessKey "access-key.enable",
    RotateAccessKeys "access-key.rotate",
    DeleteAccessKey "access-key.delete",
    CreateRequest "request.create",
    ListRequests "request.list",
    ApproveRequest "request.approve",
    WithdrawRequest "request.withdraw",
    ShowReceipt "receipt.show",
    ReadAudit "audit.read",
    VerifyAudit "audit.verify",
    PruneAudit "audit.prune",
    VerifyStorage "storage.verify",
    BackUpStorage "storage.backup",
    AddCopy "replica.add",
    AddCopyWithKeystore "replica.add-with-keystore",
    CarryKeystore "replica.keystore",
    ListCopies "replica.list",
    VerifyCopy "replica.verify",
    RemoveCopy "replica.remove",
    PromoteStandby "standby.promote",
    TakeOverEngine "engine.take-over",
    FindDamage "storage.damage",
    AcceptRollback "rollback.accept",
    JumpLockTime "lock-time.jump",
    ShowLockTime "lock-time.show",
    ConfirmLockTime "lock-time.confirm",
    StartServer "server.start",
    StopServer "server.stop",
    SignIn "server.sign-in",
}
