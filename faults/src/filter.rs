//! A filter of the kernel's that hands chosen calls to a handler in their place.

use std::sync::OnceLock;

use libc::{c_int, c_long, c_void, sock_filter};

use crate::system::{Arguments, OURS};

/// Answers a call as the kernel would: a value, or an error's number, negative.
pub(crate) type Answer = fn(c_long, &Arguments) -> c_long;

static ANSWER: OnceLock<Answer> = OnceLock::new();

/// Where `struct seccomp_data` has the call's number, and the upper half of its sixth argument.
const NUMBER: u32 = 0;
const SIXTH_UPPER: u32 = 16 + 5 * 8 + 4;

const fn step(code: u32, k: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: if_so,
        jf: if_not,
        k,
    }
}

/// Lets pass what is [`OURS`], and what is not among `numbers`.
fn program(numbers: &[c_long]) -> Vec<sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let mut steps = vec![
        step(LOAD, SIXTH_UPPER, 0, 0),
        step(IS, OURS, 0, 1),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(LOAD, NUMBER, 0, 0),
    ];
    for number in numbers {
        steps.push(step(IS, *number as u32, 0, 1));
        steps.push(step(RETURN, libc::SECCOMP_RET_TRAP, 0, 0));
    }
    steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    steps
}

/// Has `answer` answer calls of these numbers, of this thread and all that it begins.
pub(crate) fn install(numbers: &[c_long], answer: Answer) {
    ANSWER.get_or_init(|| answer);
    let mut steps = program(numbers);
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the structures are there for the calls; the handler is one for SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_call;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // No other handler runs on top of this one, and makes calls of its own.
        libc::sigfillset(&mut action.sa_mask);
        assert_eq!(
            libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()),
            0
        );
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, 0, &program), 0);
    }
}

extern "C" fn on_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: for a handler with SA_SIGINFO this is the interrupted context, ours while it runs.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // SAFETY: it is this thread's own `errno`.
    let errno = unsafe { *libc::__errno_location() };
    let order = [
        libc::REG_RDI,
        libc::REG_RSI,
        libc::REG_RDX,
        libc::REG_R10,
        libc::REG_R8,
        libc::REG_R9,
    ];
    let arguments = order.map(|register| registers[register as usize]);
    let number = registers[libc::REG_RAX as usize];
    let answered = ANSWER.get().map(|answer| answer(number, &arguments));
    registers[libc::REG_RAX as usize] = answered.unwrap_or(-c_long::from(libc::ENOSYS));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
