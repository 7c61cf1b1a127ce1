package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// A member that gets another key makes it here, beside the one that it has: the network may have it before the member
// knows, and the member may end at any moment. The files are those of a Directory; once the certificate is there the
// next key is the network's word, and Advance makes it the key.
const nextDir = "next"

// formerFile lists the public keys of before, hexadecimal, the first one first.
const formerFile = "former"

// Next is where the next key is made.
func (d Directory) Next() Directory { return Directory(d.file(nextDir)) }

// NextKey is the next key; it is made where there is none. Who asks at the same time gets the same one.
func (d Directory) NextKey() (key ed25519.PrivateKey, err error) {
	err = d.alone(func() error {
		if key, err = d.Next().key(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, key, err = ed25519.GenerateKey(rand.Reader); err == nil {
			err = d.Next().SaveKey(key)
		}
		return err
	})
	return key, err
}

// SaveNext keeps the credential for the next key. Where that has become the key meanwhile another process has kept its own.
func (d Directory) SaveNext(key ed25519.PrivateKey, c Credential) error {
	return d.alone(func() error {
		if next, err := d.Next().key(); err == nil && next.Equal(key) {
			return d.Next().Save(c)
		}
		if now, err := d.key(); err != nil || !now.Equal(key) {
			return errors.Join(err, errors.New("another key was asked for meanwhile, by another process: ask again"))
		}
		return nil
	})
}

// Advance makes the next key the key, if the network has certified it. A crash in between is made good by the next call,
// which Key and Load make.
func (d Directory) Advance() (advanced bool, err error) {
	if certified, err := d.nextIsCertified(); !certified {
		return false, err
	}
	err = d.alone(func() error {
		certified, err := d.nextIsCertified() // by now another process may have done it
		if certified {
			advanced, err = true, d.advance()
		}
		return err
	})
	return advanced, err
}

func (d Directory) nextIsCertified() (bool, error) {
	_, err := os.Stat(d.Next().file(certificateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the next key: %w", err)
	}
	return true, nil
}

func (d Directory) advance() error {
	next := d.Next()
	if _, err := os.Stat(next.file(keyFile)); err == nil {
		if err := d.retire(); err != nil {
			return err
		}
	}
	for _, name := range []string{networkFile, keyFile, certificateFile} { // the certificate is last: it says that there is something to do
		if err := os.Rename(next.file(name), d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take up the next key: %w", err)
		}
	}
	return os.Remove(string(next))
}

// retire lists the key as one of before.
func (d Directory) retire() error {
	key, err := d.key()
	if err != nil {
		return err
	}
	text := hex.EncodeToString(key.Public().(ed25519.PublicKey))
	former, err := d.formerLines()
	if err != nil || slices.Contains(former, text) {
		return err
	}
	return d.write(formerFile, []byte(strings.Join(append(former, text), "\n")+"\n"))
}

// Former are the public keys that the member had before its key, the first one first.
func (d Directory) Former() ([]ed25519.PublicKey, error) {
	lines, err := d.formerLines()
	if err != nil {
		return nil, err
	}
	list := make([]ed25519.PublicKey, len(lines))
	for i, line := range lines {
		if list[i], err = hex.DecodeString(line); err != nil || len(list[i]) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%s: %q is no public key: what this machine is called follows from the first one; restore the file, or leave the network and join it again", d.file(formerFile), line)
		}
	}
	return list, nil
}

func (d Directory) formerLines() ([]string, error) {
	b, err := os.ReadFile(d.file(formerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the keys of before: %w", err)
	}
	return strings.Fields(string(b)), nil
}

// KeySince is when the key was made; the zero time where there is none.
func (d Directory) KeySince() time.Time {
	at, err := os.Stat(d.file(keyFile))
	if err != nil {
		return time.Time{}
	}
	return at.ModTime()
}
