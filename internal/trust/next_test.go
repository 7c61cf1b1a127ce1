package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
)

// Whoever gets the next key at the same time, a daemon and a command for instance, gets the same one; the first that keeps its
// credential makes it the key, and what the others keep changes nothing.
func TestWhoAsksForANextKeyTogetherGetsOne(t *testing.T) {
	d := Directory(t.TempDir())
	before, err := d.Key()
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]ed25519.PrivateKey, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = d.NextKey(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	word := Credential{Certificate: []byte{1}, Roots: [][]byte{{2}}}
	for i, key := range keys {
		all.Go(func() {
			if !key.Equal(keys[0]) {
				t.Errorf("%d has another key", i)
			}
			if err := d.SaveNext(key, word); err != nil {
				t.Error(err)
			}
			if _, err := d.Advance(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if now, err := d.Key(); err != nil || !now.Equal(keys[0]) {
		t.Errorf("the key is not the next one: %v", err)
	}
	if former, err := d.Former(); err != nil || len(former) != 1 || !former[0].Equal(before.Public()) {
		t.Errorf("former keys: %v, %v", former, err)
	}
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveNext(foreign, word); err == nil || !strings.Contains(err.Error(), "another key was asked for meanwhile") {
		t.Errorf("a credential for a key that nobody has: %v", err)
	}
	if _, err := d.Advance(); err != nil {
		t.Error(err)
	}
	if now, err := d.Key(); err != nil || !now.Equal(keys[0]) {
		t.Errorf("it has become the key: %v", err)
	}
}

// A credential for a key that was replaced since it was asked for is not kept.
func TestACredentialForAKeyOfBeforeIsNotKept(t *testing.T) {
	d := Directory(t.TempDir())
	if _, err := d.Key(); err != nil {
		t.Fatal(err)
	}
	word := Credential{Certificate: []byte{1}, Roots: [][]byte{{2}}}
	if err := d.Renew(word, func(ed25519.PrivateKey) error { return ErrReplaced }); !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	if d.Member() {
		t.Error("it is kept")
	}
	if err := d.Renew(word, func(ed25519.PrivateKey) error { return nil }); err != nil || !d.Member() {
		t.Errorf("a good one is not: %v", err)
	}
}
