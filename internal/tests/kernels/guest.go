package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The files in the directory that is shared with the machine outside.
const (
	planFile    = "plan.json" // the suites to run, and for how long
	doneFile    = "done"      // written when all have been run
	consoleFile = "console"
)

const (
	inside   = "inside"          // argument of the process in the guest that runs the tests
	placeKey = "scaffold.place=" // word of the kernel's command line: where the shared directory goes
	oldRoot  = "/lower"
)

// lacks is doctor's exit code where something that is needed is missing.
const lacks = 6

// initialize is the first process of a machine: it puts the tests' surroundings together, runs them, reaps what
// they orphan, and switches the machine off.
func initialize() {
	err := surroundings()
	if err == nil {
		err = waitFor(exec.Command(place()+"/init", inside))
	}
	if err != nil {
		fmt.Println("kernels:", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// place is where the shared directory is mounted: the same path as outside, so that logs name it rightly.
func place() string {
	line, _ := os.ReadFile("/proc/cmdline")
	for word := range strings.FieldsSeq(string(line)) {
		if p, ok := strings.CutPrefix(word, placeKey); ok {
			return p
		}
	}
	return "/mnt"
}

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

const (
	newRoot = "/new"
	shared  = "trans=virtio,version=9p2000.L,msize=524288"
)

// surroundings makes the machine's files, below a tmpfs that takes what is written, the root.
func surroundings() error {
	os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	first := []mount{{"proc", "/proc", "proc", 0, ""}, {"sys", "/sys", "sysfs", 0, ""}, {"dev", "/dev", "devtmpfs", 0, ""}}
	if err := all(first); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	at := newRoot + place()
	rest := []mount{
		{"root", oldRoot, "9p", unix.MS_RDONLY, shared + ",cache=loose"},
		{"written", "/upper", "tmpfs", 0, "size=1500m"},
	}
	if err := errors.Join(all(rest), os.MkdirAll("/upper/up", 0o755), os.MkdirAll("/upper/work", 0o755)); err != nil {
		return err
	}
	rest = []mount{
		{"overlay", newRoot, "overlay", 0, "lowerdir=" + oldRoot + ",upperdir=/upper/up,workdir=/upper/work"},
		{"modules", newRoot + "/usr/lib/modules", "9p", unix.MS_RDONLY, shared + ",cache=loose"},
		{"out", at, "9p", 0, shared},
		{"proc", newRoot + "/proc", "proc", 0, ""}, {"sys", newRoot + "/sys", "sysfs", 0, ""}, {"dev", newRoot + "/dev", "devtmpfs", 0, ""},
		{"devpts", newRoot + "/dev/pts", "devpts", 0, "ptmxmode=0666"}, {"shm", newRoot + "/dev/shm", "tmpfs", 0, ""},
		{"run", newRoot + "/run", "tmpfs", 0, "mode=755"},
		{"cgroup", newRoot + "/sys/fs/cgroup", "cgroup2", 0, ""}, {"bpf", newRoot + "/sys/fs/bpf", "bpf", 0, ""},
		{"debug", newRoot + "/sys/kernel/debug", "debugfs", 0, ""}, {"trace", newRoot + "/sys/kernel/tracing", "tracefs", 0, ""},
	}
	if err := all(rest); err != nil {
		return err
	}
	init, err := os.ReadFile("/init")
	if err == nil {
		err = os.WriteFile(at+"/init", init, 0o755)
	}
	return errors.Join(err, tunNode(newRoot+"/dev/net"), moveTo(newRoot))
}

// tunNode makes the file whose opening loads the module, which is what kmod does on a machine that boots.
func tunNode(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mknod(dir+"/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s/tun: %w", dir, err)
	}
	return nil
}

func all(mounts []mount) error {
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// moveTo makes dir the root of the whole machine, as switch_root does: an initramfs cannot be pivoted.
func moveTo(dir string) error {
	return errors.Join(unix.Chdir(dir), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), unix.Chdir("/"))
}

func loadModules() error {
	list, err := os.ReadFile("/" + order)
	for name := range strings.FieldsSeq(string(list)) {
		f, err := os.Open("/" + name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return err
}

// waitFor runs the program to its end and reaps all that end before it.
func waitFor(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case pid == cmd.Process.Pid && status.ExitStatus() != 0:
			return fmt.Errorf("%s ended with %d", cmd.Path, status.ExitStatus())
		case pid == cmd.Process.Pid:
			return nil
		}
	}
}

// runSuites runs each suite; its output goes into a file of its own.
func runSuites() {
	dir := place()
	text, err := os.ReadFile(filepath.Join(dir, planFile))
	var work plan
	if err == nil {
		err = json.Unmarshal(text, &work)
	}
	if err == nil {
		err = exec.Command("ip", "link", "set", "lo", "up").Run()
	}
	if err != nil {
		fmt.Println("kernels:", err)
		os.Exit(1)
	}
	for _, s := range work.Suites {
		left := work.left(uptime())
		if left <= 0 {
			fmt.Printf("kernels: no time for %s\n", s.Name)
			continue
		}
		begun := time.Now()
		code := s.run(dir, left, work.Patience)
		fmt.Printf("kernels: %s ended with %d after %v\n", s.Name, code, time.Since(begun).Round(time.Second/10))
		if s.Name == doctorSuite && code == lacks {
			break // no test could pass
		}
	}
	os.WriteFile(filepath.Join(dir, doneFile), nil, 0o644)
}
