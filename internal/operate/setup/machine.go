package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/linux/durable"
)

// A Machine is this one, or the root of an image.
type Machine struct {
	Root string                     // "" for this machine
	Run  func(args ...string) error // runs a command; nil runs nothing
	Look func(program string) bool  // whether a program is there
	Live bool                       // systemd is the init and runs
}

// This is the machine that we run on.
func This() *Machine {
	_, err := os.Stat("/run/systemd/system")
	return &Machine{Run: run, Look: have, Live: err == nil}
}

// Image is the machine below a directory: its files are written, none of its programs runs.
func Image(root string) (*Machine, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root == "/" {
		return nil, errors.New("the root of an image is not this machine's")
	}
	return &Machine{Root: root, Look: func(string) bool { return false }}, nil
}

func run(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("%s: %s", strings.Join(args, " "), said)
}

func have(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// image reports whether the machine is one that does not run.
func (m *Machine) image() bool { return m.Root != "" }

// at is where a path of the machine is for us.
func (m *Machine) at(path string) string { return filepath.Join(m.Root, path) }

func (m *Machine) read(path string) ([]byte, error) { return os.ReadFile(m.at(path)) }

// Read reads one of the machine's files.
func (m *Machine) Read(path string) ([]byte, error) { return m.read(path) }

// Exists reports whether something is in a place.
func (m *Machine) Exists(path string) bool { return m.exists(path) }

func (m *Machine) exists(path string) bool {
	_, err := os.Lstat(m.at(path))
	return err == nil
}

// write replaces a file whole or not at all.
func (m *Machine) write(path string, text []byte, mode fs.FileMode) error {
	to := m.at(path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return durable.Write(to, text, mode)
}

// link makes a symbolic link, also in the place of one.
func (m *Machine) link(path, target string) error {
	to := m.at(path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".new")
	os.Remove(fresh)
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, to); err != nil {
		os.Remove(fresh)
		return err
	}
	return nil
}

// hold returns what is in a place; nil where nothing is.
func (m *Machine) hold(path string) (*before, error) {
	info, err := os.Lstat(m.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := os.Readlink(m.at(path))
		return &before{Link: target}, err
	case 0:
		text, err := m.read(path)
		return &before{Text: text, Mode: uint32(info.Mode().Perm())}, err
	}
	return nil, fmt.Errorf("%s: is no file", m.at(path))
}

// restore puts back what was held; nil removes.
func (m *Machine) restore(path string, b *before) error {
	switch {
	case b == nil:
		if err := os.Remove(m.at(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case b.Link != "":
		return m.link(path, b.Link)
	}
	return m.write(path, b.Text, fs.FileMode(b.Mode))
}

func (b *before) perm() fs.FileMode {
	if b.Link != "" {
		return 0o644
	}
	return fs.FileMode(b.Mode)
}

// is reports whether both are the same.
func (b *before) is(other *before) bool {
	return b.Link == other.Link && string(b.Text) == string(other.Text)
}

func (m *Machine) contains(path, word string) bool {
	raw, err := m.read(path)
	return err == nil && strings.Contains(string(raw), word)
}

// glob lists the files of a directory with that ending.
func (m *Machine) glob(dir, ending string) (paths []string) {
	entries, _ := os.ReadDir(m.at(dir))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}
