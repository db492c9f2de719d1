//! Writing through a stream that only looks at what is read.

/// Implements [`AsyncWrite`](tokio::io::AsyncWrite) for a type by the stream in one of its fields.
macro_rules! forward_writes {
    (impl[$($generic:tt)*] $stream:ty, $field:ident) => {
        impl<$($generic)*> tokio::io::AsyncWrite for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.get_mut().$field).poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.get_mut().$field).poll_write_vectored(cx, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.$field.is_write_vectored()
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().$field).poll_flush(cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().$field).poll_shutdown(cx)
            }
        }
    };
}

pub(super) use forward_writes;
