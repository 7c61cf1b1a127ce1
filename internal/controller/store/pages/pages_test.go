package pages

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// made is a database as etcd makes it: a large bucket with branches, small ones in a leaf, freed pages between.
func made(t testing.TB, freelist bool) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: !freelist, PageSize: minPageSize, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		err := db.Update(func(tx *bolt.Tx) error {
			for _, name := range []string{"alarm", "key", "meta"} {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			for i := range 200 {
				key := []byte{byte(i >> 4), byte(i), byte(round)}
				if err := tx.Bucket([]byte("key")).Put(key, bytes.Repeat(key, 10)); err != nil {
					return err
				}
			}
			if err := tx.Bucket([]byte("key")).Put([]byte("long"), make([]byte, 5000)); err != nil {
				return err
			}
			return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte{0, 0, 0, 0, 0, 0, 1, byte(round)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(b []byte) (Database, error) { return Check(bytes.NewReader(b), int64(len(b))) }

func TestADatabaseIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	for _, freelist := range []bool{false, true} {
		b := made(t, freelist)
		db, err := check(b)
		if err != nil || db.Applied != 0x102 || db.Size > int64(len(b)) || db.Size == 0 {
			t.Errorf("with a list of free pages %v: %+v of %d bytes, %v", freelist, db, len(b), err)
		}
		if _, err := check(b[:db.Size]); err != nil {
			t.Errorf("without what was only taken in advance: %v", err)
		}
		for size := range db.Size {
			if size%97 == 0 {
				if _, err := check(b[:size]); err == nil {
					t.Fatalf("%d of %d bytes are a database", size, db.Size)
				}
			}
		}
	}
}

// TestAPageInAnothersPlaceIsFound: whatever stands in a page that counts, one of the two is said; and bbolt opens what
// is said to be whole.
func TestAPageInAnothersPlaceIsFound(t *testing.T) {
	t.Parallel()
	b := made(t, false)
	db, err := check(b)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for id := int64(2); id < db.Size/minPageSize; id++ {
		for what, page := range map[string][]byte{"zeroes": make([]byte, minPageSize), "foreign": bytes.Repeat([]byte{0x5a}, minPageSize), "another": b[2*minPageSize : 3*minPageSize]} {
			broken := bytes.Clone(b)
			copy(broken[id*minPageSize:], page)
			if _, err := check(broken); err != nil {
				if !strings.Contains(err.Error(), "byte ") {
					t.Errorf("page %d, %s: %v: want where", id, what, err)
				}
				found++
				continue
			}
			opens(t, broken)
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}

// opens reads all of a database with bbolt.
func opens(t *testing.T, b []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error {
			return bucket.ForEach(func(_, _ []byte) error { return nil })
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// FuzzCheck: no bytes make it panic, hang or take memory without end; patch is laid over a true database, whose headers'
// checksums most foreign bytes would fail at.
func FuzzCheck(f *testing.F) {
	whole := made(f, true)
	f.Add(whole, uint32(0), []byte{})
	for range 32 {
		at := rand.Uint32N(uint32(len(whole)))
		f.Add(whole[:minPageSize], at, whole[at:min(int(at)+64, len(whole))])
	}
	f.Fuzz(func(_ *testing.T, alone []byte, at uint32, patch []byte) {
		_, _ = check(alone)
		b := bytes.Clone(whole)
		copy(b[int(at)%len(b):], patch)
		_, _ = check(b)
	})
}
