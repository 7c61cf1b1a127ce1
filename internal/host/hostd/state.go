package hostd

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"scaffold.dev/scaffold/internal/linux/private"
	"scaffold.dev/scaffold/sid"
)

// A store keeps the daemon's files.
type store struct{ dir string }

func openStore(dir string) (store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return store{}, fmt.Errorf("state directory: %w", err)
	}
	if err := private.Check(dir); err != nil { // the host's key is in it
		return store{}, fmt.Errorf("state directory: %w", err)
	}
	return store{dir}, nil
}

// identityOf is the low half of the host's stable client address: it follows from the first key that the host had, so
// that a restart keeps it, and another key.
func identityOf(key ed25519.PublicKey) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:8])>>1 | sid.ReservedSuffixes
}

// Remove forgets a file.
func (s store) Remove(name string) { os.Remove(filepath.Join(s.dir, name)) }

func (s store) Read(name string, v any) bool {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	return err == nil && json.Unmarshal(b, v) == nil
}

func (s store) WriteJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(name, b)
}

// write replaces the file as a whole: a crash leaves the old one or the new one.
func (s store) write(name string, b []byte) error {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file+".new", b, 0o600); err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return os.Rename(file+".new", file)
}

// bootID tells this boot of the machine from others.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// netnsInode names the daemon's network namespace, also in the paths of pins.
func netnsInode() (uint64, error) {
	info, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return 0, fmt.Errorf("this process's network namespace: %w", err)
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

// permitsDir has, in the state directory, the permits that were presented.
const permitsDir = "permits"

// keepPermit saves one that was presented.
func (s store) keepPermit(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Join(s.dir, permitsDir), 0o700); err != nil {
		return fmt.Errorf("save a permit: %w", err)
	}
	return s.write(filepath.Join(permitsDir, name), text)
}
