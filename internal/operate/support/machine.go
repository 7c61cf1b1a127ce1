package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// commands are asked for what the kernel and the system know. What is not installed is missing.
var commands = map[string][]string{
	"machine/links.json":      {"ip", "-d", "-s", "-j", "link"},
	"machine/addresses.json":  {"ip", "-j", "address"},
	"machine/routes-6.json":   {"ip", "-6", "-j", "route", "show", "table", "all"},
	"machine/rules-6.json":    {"ip", "-6", "-j", "rule"},
	"machine/routes-4.json":   {"ip", "-4", "-j", "route"},
	"machine/neighbours.json": {"ip", "-j", "neigh"},
	"machine/qdiscs.txt":      {"tc", "-s", "qdisc"},
	"machine/nftables.txt":    {"nft", "list", "ruleset"},
	"machine/ip6tables.txt":   {"ip6tables-save"},
	"machine/sockets.txt":     {"ss", "-6", "-a", "-n", "-t", "-u", "-p", "-e"},
	"machine/processes.txt":   {"ps", "-eo", "pid,ppid,pcpu,rss,etime,stat,args"},
	"machine/resolvectl.txt":  {"resolvectl", "status"},
	"machine/units.txt":       {"systemctl", "status", "--no-pager", "-l", "scaffold*"},
	"machine/dmesg.txt":       {"dmesg", "-T"},
}

// files are read as they are.
var files = []string{
	"/etc/os-release", "/proc/version", "/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/mounts",
	"/proc/net/dev", "/proc/net/snmp6", "/proc/net/netstat", "/proc/net/softnet_stat", "/proc/net/sockstat6", "/etc/resolv.conf",
}

// sysctls bear on flows.
var sysctls = []string{
	"net/ipv6/ip_nonlocal_bind", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/all/disable_ipv6", "net/ipv4/tcp_syncookies",
	"net/ipv4/tcp_retries2", "net/ipv4/tcp_mtu_probing", "net/ipv4/tcp_early_demux", "net/core/somaxconn", "kernel/unprivileged_bpf_disabled",
}

// Machine is what this machine and its network namespace say. logsSince is how far back the journal is read.
func Machine(logsSince time.Duration) []Source {
	var all []Source
	for name, argv := range commands {
		all = append(all, Source{name, command(argv...)})
	}
	for _, path := range files {
		all = append(all, Source{"machine" + path, file(path)})
	}
	all = append(all,
		Source{"machine/sysctl.txt", readSysctls},
		Source{"machine/journal.txt", command("journalctl", "--no-pager", "-o", "short-precise", "-n", "50000", "-u", "scaffold*", "--since", fmt.Sprintf("-%ds", int(logsSince.Seconds())))},
	)
	return all
}

// Files are those that match the patterns, under a directory of the archive.
func Files(dir string, patterns ...string) (all []Source) {
	for _, p := range patterns {
		matches, _ := filepath.Glob(p) // the patterns are ours
		for _, path := range matches {
			all = append(all, Source{dir + "/" + strings.TrimPrefix(path, "/"), file(path)})
		}
	}
	return all
}

func file(path string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return os.ReadFile(path) }
}

func readSysctls(context.Context) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range sysctls {
		value, err := os.ReadFile("/proc/sys/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		fmt.Fprintf(&out, "%s = %s\n", strings.ReplaceAll(name, "/", "."), bytes.TrimSpace(value))
	}
	return out.Bytes(), nil
}

// command runs a program. What it printed before it failed is kept.
func command(argv ...string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		if _, err := exec.LookPath(argv[0]); err != nil {
			return nil, fmt.Errorf("%s is not installed", argv[0])
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		// What a shell among them has started ends with it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			err = fmt.Errorf("%s did not end in %v", strings.Join(argv, " "), sourceTime)
		} else if err != nil {
			lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			err = fmt.Errorf("%s: %w: %.200s", strings.Join(argv, " "), err, lines[len(lines)-1])
		}
		return out, err
	}
}

// Examination is what a function of this process found, as JSON.
func Examination(name string, examine func() any) Source {
	return Source{name, func(context.Context) ([]byte, error) { return json.MarshalIndent(examine(), "", "  ") }}
}
