// Package ovs says how an Open vSwitch of one's own is run: all in user space, in a directory of its
// own, without a system service, a kernel module or a file elsewhere. It prepares commands and starts
// nothing, so that who starts them decides about namespace, cgroup and output.
//
// The order is: [Instance.Create] once, [Instance.Database], [Instance.Answers] until it does,
// [Instance.Configure] with bridges, [Instance.Daemon]. What is configured before the daemon starts is
// there when it has started. Both daemons stay in the foreground and may be ended by SIGKILL: the
// devices that they made go with them, and what is left in the directory is taken over by the next.
package ovs
