// Package helper is how a program of Scaffold finds another one, as git finds its helpers: beside itself, else in PATH.
package helper

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Caller is the variable that names the program that called a helper, for the helper to call back.
const Caller = "SCAFFOLD_PROGRAM"

// Find returns the path of the program.
func Find(name string) (string, error) {
	self, err := os.Executable() // without symbolic links: the kernel tells it
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return path, nil
	}
	return exec.LookPath(name)
}

// Exec has the program at path take the place of this process; shown is what it is called there. Where ctx has ended it
// does not: a signal that came before would be forgotten, and the other program would never hear of it. From here on one
// ends this process, as it will the other's until that has handlers of its own.
func Exec(ctx context.Context, path, shown string, args []string) error {
	signal.Reset()
	if err := ctx.Err(); err != nil {
		return err
	}
	env, err := environ()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, append([]string{shown}, args...), env))
}

// Command is the program at path as a child.
func Command(path string, args ...string) (*exec.Cmd, error) {
	env, err := environ()
	cmd := exec.Command(path, args...)
	cmd.Env = env
	return cmd, err
}

func environ() ([]string, error) {
	self, err := os.Executable()
	return append(os.Environ(), Caller+"="+self), err
}
