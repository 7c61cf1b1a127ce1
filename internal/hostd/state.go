package hostd

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"scaffold.dev/scaffold/sid"
)

// A place is where and as whom the host is in the network: what Joined said, and what is needed to set
// the kernel up again without asking anyone.
type place struct {
	BootID    string       `json:"boot_id"`
	Netns     uint64       `json:"netns"` // inode
	Network   string       `json:"network"`
	Domain    string       `json:"domain"`
	Space     sid.Space    `json:"space"`
	Locator   sid.Locator  `json:"locator"`
	Uplink    string       `json:"uplink"`
	Router    netip.Addr   `json:"router"` // link-local, without zone
	Routers   []string     `json:"routers"`
	Nonlocal  string       `json:"nonlocal_bind"` // the sysctl before we came
	Neighbour *neighbourAt `json:"neighbour,omitempty"`
}

// neighbourAt names the router behind Router.
type neighbourAt struct {
	Name string `json:"name"`
	Port string `json:"port"`
}

// A store keeps the daemon's files.
type store struct{ dir string }

func openStore(dir string) (store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return store{}, fmt.Errorf("state directory: %w", err)
	}
	return store{dir}, nil
}

// key is the host's own; it is made once.
func (s store) key() (ed25519.PrivateKey, error) {
	file := filepath.Join(s.dir, "key")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, s.write("key", []byte(hex.EncodeToString(key.Seed())+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("the host's key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is no key: remove it and the host joins as a new one", file)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// identityOf is the low half of the host's stable client address: it follows from the key, so that a
// restart keeps it.
func identityOf(key ed25519.PrivateKey) uint64 {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return binary.BigEndian.Uint64(sum[:8])>>1 | sid.ReservedSuffixes
}

// place reads the last one if it was in this namespace since this boot.
func (s store) place(bootID string, netns uint64) *place {
	var p place
	if !s.read("place.json", &p) || p.BootID != bootID || p.Netns != netns || p.Space.Validate() != nil {
		return nil
	}
	return &p
}

func (s store) savePlace(p *place) error { return s.writeJSON("place.json", p) }

func (s store) forgetPlace() { os.Remove(filepath.Join(s.dir, "place.json")) }

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
