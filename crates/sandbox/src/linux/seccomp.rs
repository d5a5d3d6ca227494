//! Refuses, by seccomp, the system calls that no command needs and that could get around the sandbox.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use crate::spec::Network;

/// Refused with any arguments.
const REFUSED: [i64; 56] = [
    // Other processes' memory and files.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces: what the sandbox is made of.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The kernel: its keys, programs, modules, rings and faults.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_memfd_secret,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
];

/// Calls that change the permissions, owners, times and attributes of files.
const METADATA: [i64; 15] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Newer ones, which have the same number on every system: fchmodat2, setxattrat, removexattrat and file_setattr.
    452,
    463,
    466,
    469,
];
/// The same in older forms, which newer systems do not have.
#[cfg(target_arch = "x86_64")]
const OLD_METADATA: [i64; 6] =
    [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: [i64; 0] = [];
/// Attributes of files as commands to them: `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
const ATTRIBUTES: [u64; 2] = [0x4008_6602, 0x401c_5820];

/// New namespaces, as flags of `clone`.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];

/// From this number on, x86-64 has the same calls a second time, which no rule below would see.
const OTHER_CALLS: u32 = 0x4000_0000;

/// Keeps this process, and all that it starts, from these calls. `private`: it has a network of its own. `keeps_metadata`: it
/// changes the permissions, owners and times of no file.
pub(super) fn apply(network: &Network, private: bool, keeps_metadata: bool) -> Result<(), String> {
    for program in programs(network, private, keeps_metadata)? {
        apply_filter(&program).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

fn programs(network: &Network, private: bool, keeps_metadata: bool) -> Result<Vec<BpfProgram>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| format!("seccomp: {error}"))?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let wrong = |error: seccompiler::BackendError| format!("seccomp: {error}");
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        let rule = rule(&[(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)]).map_err(wrong)?;
        rules.entry(libc::SYS_clone).or_default().push(rule);
    }
    // These would type into the terminal that we run in.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        let rule = rule(&[(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)]).map_err(wrong)?;
        rules.entry(libc::SYS_ioctl).or_default().push(rule);
    }
    if keeps_metadata {
        rules.extend(METADATA.into_iter().chain(OLD_METADATA).map(|call| (call, Vec::new())));
        for request in ATTRIBUTES {
            let rule = rule(&[(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)]).map_err(wrong)?;
            rules.entry(libc::SYS_ioctl).or_default().push(rule);
        }
    }
    rules.insert(libc::SYS_socket, sockets(network, private).map_err(wrong)?);
    let errno = |number: i32| SeccompAction::Errno(number.cast_unsigned());
    let make = |rules, action| {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(wrong)?;
        BpfProgram::try_from(filter).map_err(wrong)
    };
    let mut refused = make(rules, errno(libc::EPERM))?;
    if cfg!(target_arch = "x86_64") {
        refused.splice(0..0, other_calls());
    }
    // The filter cannot see the flags of `clone3`. Told that there is no such call, programs use `clone`, whose flags
    // it sees.
    let unseen = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![refused, make(unseen, errno(libc::ENOSYS))?])
}

type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let one = |(index, length, operator, value): &Condition| {
        SeccompCondition::new(*index, length.clone(), operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(one).collect::<Result<_, _>>()?)
}

/// Which sockets are refused; an empty list refuses all of them. Pairs of sockets are another call, and fine.
fn sockets(network: &Network, private: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // On a network that is shared with the machine, sockets of this kind reach its services by name.
    let families: &[i32] = match (network, private) {
        (Network::None | Network::Proxy, true) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (Network::All, _) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (Network::None | Network::Proxy, false) => return Ok(Vec::new()),
    };
    let number = |value: i32| u64::from(value.cast_unsigned());
    let word = SeccompCmpArgLen::Dword;
    let others: Vec<Condition> =
        families.iter().map(|family| (0, word.clone(), SeccompCmpOp::Ne, number(*family))).collect();
    let route = number(libc::NETLINK_ROUTE);
    let netlink =
        [(0, word.clone(), SeccompCmpOp::Eq, number(libc::AF_NETLINK)), (2, word.clone(), SeccompCmpOp::Ne, route)];
    Ok(vec![rule(&others)?, rule(&netlink)?])
}

/// Refuses every call whose number is beyond the ordinary ones.
fn other_calls() -> [sock_filter; 3] {
    let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let is_other = sock_filter { code: 0x35, jt: 0, jf: 1, k: OTHER_CALLS };
    let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned() };
    [load_number, is_other, refuse]
}
