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

	"scaffold.dev/scaffold/sid"
)

// A store keeps the daemon's files.
type store struct{ dir string }

func openStore(dir string) (store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
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

// A record is what a restarted daemon needs to go on where the last one was, without asking anyone.
type record struct {
	home
	Places []place  `json:"places"`
	Former []former `json:"former,omitempty"`
}

// The files of records: the second is that of versions whose hosts had one place.
const (
	placesFile = "places.json"
	placeFile  = "place.json"
)

// places reads the last record if it was made in this namespace since this boot.
func (s store) places(bootID string, netns uint64) *record {
	var r record
	if !s.read(placesFile, &r) && !s.onePlace(&r) {
		return nil
	}
	if r.BootID != bootID || r.Netns != netns || r.Space.Validate() != nil || len(r.Places) == 0 {
		return nil
	}
	return &r
}

// onePlace reads the form of before: one place, its fields among those of the home.
func (s store) onePlace(r *record) bool {
	var p place
	if !s.read(placeFile, &r.home) || !s.read(placeFile, &p) {
		return false
	}
	r.Places = []place{p}
	return true
}

func (s store) savePlaces(r *record) error { return s.writeJSON(placesFile, r) }

func (s store) forgetPlaces() {
	os.Remove(filepath.Join(s.dir, placesFile))
	os.Remove(filepath.Join(s.dir, placeFile))
}

// remove forgets a file.
func (s store) remove(name string) { os.Remove(filepath.Join(s.dir, name)) }

func (s store) read(name string, v any) bool {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	return err == nil && json.Unmarshal(b, v) == nil
}

func (s store) writeJSON(name string, v any) error {
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
