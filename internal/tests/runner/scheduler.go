package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"scaffold.dev/scaffold/internal/linux/priority"
)

// withoutGroups sees to it that tests get a processor beside noise, and gives a way to put back what it changed. Kernels that
// schedule sessions as groups, and starve whatever is outside of one that is busy, do so to ksoftirqd and the workqueues as
// well: a test that fails then says nothing of what it tests. It is a fault of the kernel, and doctor tells it to users.
//
// Without root nothing is changed but by sudo, which was asked for before; where that is refused tests run as they are.
func withoutGroups() (restore func()) {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	on, _ := os.ReadFile(priority.Groups)
	kernel := strings.TrimSpace(string(release))
	if strings.TrimSpace(string(on)) != "1" || !priority.GroupsStarve(kernel) {
		return func() {}
	}
	if err := groups("0"); err != nil {
		fmt.Printf("note: Linux %s starves some programs while others wake each other (scaffold doctor), and %s cannot be set: %v\n", kernel, priority.Groups, err)
		return func() {}
	}
	fmt.Printf("note: while tests run %s is 0: with 1, Linux %s starves some programs while others wake each other (scaffold doctor)\n", priority.Groups, kernel)
	return func() {
		if err := groups("1"); err != nil {
			fmt.Printf("%s is still 0 and was 1: %v\n", priority.Groups, err)
		}
	}
}

func groups(value string) error {
	if os.Geteuid() == 0 {
		return os.WriteFile(priority.Groups, []byte(value), 0)
	}
	cmd := exec.Command("sudo", "-n", "tee", priority.Groups)
	cmd.Stdin = strings.NewReader(value)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
