package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestASessionBelongsToWhoWroteItLast(t *testing.T) {
	path := t.TempDir()
	a, b := open(t, path), open(t, path)
	must(t, a.Put("fd5d::1/80", 1))
	var got int
	if ok, err := b.Get("fd5d::1/80", &got); !ok || err != nil || got != 1 {
		t.Fatalf("the other instance reads %d, %v, %v", got, ok, err)
	}
	must(t, b.Put("fd5d::1/80", 2))
	must(t, a.Drop("fd5d::1/80"))
	if ok, err := a.Get("fd5d::1/80", &got); !ok || err != nil || got != 2 {
		t.Errorf("after the former owner's Drop: %d, %v, %v, want the session", got, ok, err)
	}
	must(t, b.Drop("fd5d::1/80"))
	must(t, b.Drop("fd5d::1/80"))
	if ok, err := a.Get("fd5d::1/80", &got); ok || err != nil {
		t.Errorf("after the owner's Drop: %v, %v, want none", ok, err)
	}
}

func TestKeysAreListedByPrefix(t *testing.T) {
	d := open(t, t.TempDir())
	for _, key := range []string{"69/a/1", "69/b/1", "70/a/1"} {
		must(t, d.Put(key, key))
	}
	keys, err := d.Keys("69/")
	if slices.Sort(keys); err != nil || !slices.Equal(keys, []string{"69/a/1", "69/b/1"}) {
		t.Errorf("%q, %v", keys, err)
	}
}

func TestWhatNobodyTouchesGoes(t *testing.T) {
	path := t.TempDir()
	must(t, open(t, path).Put("old", 1))
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(path, "old"), hour, hour))
	if keys, _ := open(t, path).Keys(""); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
}

func TestAHalfWrittenRecordIsAnError(t *testing.T) {
	d := open(t, t.TempDir())
	must(t, os.WriteFile(d.file("k"), []byte(`{"Owner":`), 0o600))
	var got int
	if ok, err := d.Get("k", &got); ok || err == nil {
		t.Errorf("Get: %v, %v", ok, err)
	}
}

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, time.Minute)
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
