package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/durable"
)

// A Directory holds what makes a machine, or a person, a member of a network:
//
//	key              seed of the member's Ed25519 key, hexadecimal
//	certificate.pem  the network's word about it
//	network.pem      the certificates of the network's keys
//	key.pem          of people: the key once more, as other programs read it
//	former           the public keys that it had before, where it had any
//	next/            the next key, while it gets one
//	lock             who changes several of these holds it
type Directory string

// The files of a Directory.
const (
	keyFile         = "key"
	certificateFile = "certificate.pem"
	networkFile     = "network.pem"
	keyPEMFile      = "key.pem"
	lockFile        = "lock"
)

// Key is the member's own; it is made where there is none.
func (d Directory) Key() (ed25519.PrivateKey, error) {
	if _, err := d.Advance(); err != nil {
		return nil, err
	}
	key, err := d.key()
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, d.SaveKey(key)
	}
	return key, err
}

// Member says that there is a credential; Load says whether it is good.
func (d Directory) Member() bool {
	_, err := os.Stat(d.file(certificateFile))
	return err == nil
}

func (d Directory) key() (ed25519.PrivateKey, error) {
	file := d.file(keyFile)
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is no key: remove it, and this becomes a new member", file)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// KeyForOthers writes the key as PEM beside the certificate: with both, programs that know TLS and nothing of Scaffold,
// Prometheus for instance, are who the directory is.
func (d Directory) KeyForOthers() error {
	key, err := d.key()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return d.write(keyPEMFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// SaveKey replaces the key.
func (d Directory) SaveKey(key ed25519.PrivateKey) error {
	return d.write(keyFile, []byte(hex.EncodeToString(key.Seed())+"\n"))
}

// A Credential is a member's certificate with the keys of its network.
type Credential struct {
	Certificate []byte   // DER
	Roots       [][]byte // DER
}

// Save replaces the credential. The network's certificates come first: they may be more than before, and the
// certificate is of no use without.
func (d Directory) Save(c Credential) error {
	var network []byte
	for _, der := range c.Roots {
		network = append(network, encode(der)...)
	}
	if err := d.write(networkFile, network); err != nil {
		return err
	}
	return d.write(certificateFile, encode(c.Certificate))
}

// Renew replaces the credential by a fresh one, if that is for the key that there is: another process may have got another
// one meanwhile. fits says whether it is.
func (d Directory) Renew(c Credential, fits func(ed25519.PrivateKey) error) error {
	if _, err := d.Advance(); err != nil {
		return err
	}
	return d.alone(func() error {
		key, err := d.key()
		if err == nil {
			err = fits(key)
		}
		if err == nil {
			err = d.Save(c)
		}
		return err
	})
}

// ErrReplaced says that a credential is for a key that has been replaced since it was asked for: it is of no use, and no loss.
var ErrReplaced = errors.New("the key was replaced meanwhile")

// alone does what takes several files to do. A daemon and a command may be at it together (`scaffold rotate` of an agent):
// each would take half of the other's for its own. The lock ends with the process that has it. It is on a file that its owner
// alone can open: on the directory anybody could hold it who may read that, and the daemon would wait for him.
func (d Directory) alone(do func() error) error {
	f, err := os.OpenFile(d.file(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", d, err)
	}
	return do()
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// ErrNone says that a directory holds no credential: its owner has joined no network with keys.
var ErrNone = errors.New("no credential")

// Load reads the credential and whom it names; ErrNone where there is none.
func (d Directory) Load() (*Member, error) {
	if info, err := os.Stat(string(d)); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is no directory", ErrNone, d)
	}
	if _, err := d.Advance(); err != nil {
		return nil, err
	}
	leaf, err := d.read(certificateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, d)
	}
	if err != nil {
		return nil, err
	}
	network, err := d.read(networkFile)
	if err != nil {
		return nil, err
	}
	key, err := d.Key()
	if err != nil {
		return nil, err
	}
	m, err := NewMember(key, Credential{Certificate: leaf[0], Roots: network})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return m, nil
}

// Forget removes the credential and the key: the member is none any more.
func (d Directory) Forget() error {
	err := os.RemoveAll(string(d.Next()))
	for _, name := range []string{certificateFile, networkFile, keyFile, keyPEMFile, formerFile, addressesFile, lockFile} {
		if e := os.Remove(d.file(name)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (d Directory) file(name string) string { return filepath.Join(string(d), name) }

func (d Directory) read(name string) (ders [][]byte, err error) {
	b, err := os.ReadFile(d.file(name))
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		ders = append(ders, block.Bytes)
	}
	if len(ders) == 0 {
		return nil, fmt.Errorf("%s holds no certificate: join the network again", d.file(name))
	}
	return ders, nil
}

// write replaces a file: a crash, of the machine too, leaves the old one or the new one.
func (d Directory) write(name string, b []byte) error {
	err := os.MkdirAll(string(d), 0o700)
	if err == nil {
		err = durable.Write(d.file(name), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return nil
}

// checkOwn says what is wrong with a credential for a key.
func checkOwn(key ed25519.PrivateKey, c Credential) (*x509.Certificate, *Roots, Identity, error) {
	roots, err := NewRoots(c.Roots...)
	if err != nil {
		return nil, nil, Identity{}, err
	}
	leaf, err := x509.ParseCertificate(c.Certificate)
	if err != nil {
		return nil, nil, Identity{}, fmt.Errorf("the certificate: %w", err)
	}
	who, err := roots.verifyEver(leaf, x509.ExtKeyUsageClientAuth)
	if err == nil && !who.Key.Equal(key.Public()) {
		err = errors.New("the certificate is for another key: was the key file replaced? join the network again")
	}
	return leaf, roots, who, err
}

func pair(key ed25519.PrivateKey, leaf *x509.Certificate) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// SaveAddresses keeps where the controllers are, host:port.
func (d Directory) SaveAddresses(list []string) error {
	return d.write(addressesFile, []byte(strings.Join(list, "\n")+"\n"))
}

// Addresses are what SaveAddresses kept.
func (d Directory) Addresses() []string {
	b, _ := os.ReadFile(d.file(addressesFile)) // none where there is no file
	return strings.Fields(string(b))
}

const addressesFile = "controllers"
