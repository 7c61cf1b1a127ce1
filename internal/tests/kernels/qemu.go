package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What Debian and qemu call the one architecture that this is tried on, and its first serial port.
const (
	arch    = "amd64"
	program = "qemu-system-x86_64"
	console = "ttyS0"
)

// slower is how much more time a machine without KVM gets.
const slower = 10

// kvm says whether the processor helps: /dev/kvm alone promises nothing, for there are drivers of it that run kernels
// made for them only.
func kvm() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	drivers, _ := filepath.Glob("/sys/module/kvm_[ai][mn][dt]*") // the pattern is well-formed
	return drivers != nil
}

func acceleration() string {
	if kvm() {
		return "under KVM"
	}
	return "emulated, which is slow: there is no KVM by an Intel or AMD processor here"
}

// errTime says that a machine did not switch itself off in its time.
var errTime = errors.New("cut off for time")

// boot starts the kernel and returns when it has switched itself off, or is out of time. What it leaves is in dir.
func boot(ctx context.Context, k kernel, suites []suite, dir string, limit time.Duration) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	image, err := initramfs(ctx, k)
	if err != nil {
		return err
	}
	patience := 1
	if !kvm() {
		limit, patience = limit*slower, slower
	}
	work, err := json.Marshal(plan{limit, patience, suites})
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "initramfs"), image, 0o644), os.WriteFile(filepath.Join(dir, planFile), work, 0o644))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, arguments(k, dir)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &complaint, &complaint
	err = cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w\nhint: apt-get install qemu-system-x86", err)
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Errorf("%w after %v; its console said last:\n%s\nhint: -limit gives it more time, -keep keeps what it wrote", errTime, limit, tail(dir))
	case err != nil:
		return fmt.Errorf("%s: %w: %s", program, err, complaint.String())
	}
	if _, err := os.Stat(filepath.Join(dir, doneFile)); err != nil {
		return fmt.Errorf("it stopped before its tests were through; its console said last:\n%s", tail(dir))
	}
	return nil
}

// arguments are those of a machine with this machine's files, the kernel's modules and the shared directory.
func arguments(k kernel, dir string) []string {
	accelerator, cpu := "kvm", "host"
	if !kvm() {
		accelerator, cpu = "tcg", "max"
	}
	share := func(tag, path, more string) []string {
		return []string{"-virtfs", "local,path=" + strings.ReplaceAll(path, ",", ",,") + ",mount_tag=" + tag + ",security_model=none" + more}
	}
	args := []string{"-machine", "q35,accel=" + accelerator, "-cpu", cpu, "-smp", "2", "-m", "3072",
		"-nodefaults", "-display", "none", "-no-reboot", "-nic", "none", "-serial", "file:" + filepath.Join(dir, consoleFile),
		"-kernel", k.image, "-initrd", filepath.Join(dir, "initramfs"), "-append", "console=" + console + " panic=-1 loglevel=4 " + placeKey + dir}
	args = append(args, share("root", "/", ",readonly=on,multidevs=remap")...)
	args = append(args, share("modules", filepath.Join(k.root, "lib", "modules"), ",readonly=on")...)
	return append(args, share("out", dir, "")...)
}

// tail is the end of what the kernel said on its console.
func tail(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, consoleFile))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
