package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// Files of the log that are small: a test fills three of them in no time.
func init() {
	setSegment()
	wal.SegmentSizeBytes = 128 << 10
}

// hosts is how many are in the directories that are damaged.
const hosts = 14

// full is a directory that a controller left: of little, or of three files of the log, of which etcd has let go of the first
// changes.
func full(t *testing.T, large bool) string {
	t.Helper()
	dir := abandonedDir(t)
	cfg := Config{Dir: dir, Network: "test", Log: slog.New(slog.DiscardHandler)}
	host := Host{}
	if large {
		cfg.copies, host.Key = 5, bytes.Repeat([]byte{7}, 24<<10)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range hosts {
		host.Name = fmt.Sprintf("h%d", i)
		if err := s.Commit(t.Context(), PutHost(host)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// abandoned has the directories in which an etcd that gave up in the middle of its start may still make a file: nobody can
// wait for its end, and it makes a directory anew that a test has removed.
var abandoned string

func TestMain(m *testing.M) {
	var err error
	if abandoned, err = os.MkdirTemp("", "damaged-"); err != nil {
		panic(err)
	}
	code := m.Run()
	for range 100 {
		if os.RemoveAll(abandoned) == nil {
			break
		}
	}
	os.Exit(code)
}

// abandonedDir is a new one of them.
func abandonedDir(t *testing.T) string {
	dir, err := os.MkdirTemp(abandoned, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Files below a data directory.
const (
	database = "etcd/member/snap/db"
	firstLog = "etcd/member/wal/0000000000000000-0000000000000000.wal"
)

// damages are what disks and people do to it. want is what is said, "" where nothing is lost; mv where the database alone
// is to be moved away.
var damages = []struct {
	name  string
	large bool
	do    func(*testing.T, string)
	want  string
	mv    bool
}{
	{name: "nothing"},
	{name: "nothing, of much", large: true},
	{name: "log of 0 bytes", do: cut(firstLog, 0), want: "before it says whose it is"},
	{name: "log of 8 bytes", do: cut(firstLog, 8), want: "before it says whose it is"},
	{name: "log of 100 bytes", do: cut(firstLog, 100), want: "wal is damaged: it ends at byte "},
	{name: "log of 500 bytes", do: cut(firstLog, 500), want: "wal is damaged: it ends at byte "},
	{name: "log of 2000 bytes", do: cut(firstLog, 2000), want: "wal is damaged: it ends at byte "},
	{name: "log begins with garbage", do: fill(firstLog, 0, 4096, 0xa5), want: "before it says whose it is"},
	{name: "a bit of the log flipped: a length", do: flip(firstLog, 300), want: "wal is damaged: "},
	{name: "a bit of the log flipped: what was written", do: flip(firstLog, 1200), want: "what follows is no record of it"},
	{name: "log removed", do: remove(firstLog), want: "no file of the log is there"},
	{name: "directory of the log removed", do: remove(filepath.Dir(firstLog)), want: "no file of the log is there"},
	{name: "second file of the log removed", large: true, do: removeNth(1), want: "the file with number 0000000000000001 is not there"},
	{name: "last file of the log removed", large: true, do: removeNth(-1), want: "wal is damaged: it ends at byte "},
	{name: "second file of the log cut", large: true, do: func(t *testing.T, dir string) { cut(nth(t, dir, 1), 1<<16)(t, dir) }, want: "wal is damaged: byte "},
	{name: "database of 0 bytes", do: cut(database, 0)},
	{name: "database of 0 bytes, of much", large: true, do: cut(database, 0), want: "it is not there, and the log begins after change"},
	{name: "database of 100 bytes", do: cut(database, 100), want: "it ends after 100 bytes", mv: true},
	{name: "database of a page", do: cut(database, 4096), want: "it ends after 4096 bytes", mv: true},
	{name: "database of two pages", do: cut(database, 8192), want: "it ends after 8192 bytes", mv: true},
	{name: "database of three pages", do: cut(database, 3*4096), want: "it ends after 12288 bytes", mv: true},
	{name: "database cut, of much", large: true, do: cut(database, 1<<16), want: "it ends after 65536 bytes"},
	{name: "database is garbage", do: fill(database, 0, 1<<16, 0x5a), want: "neither of its two headers can be read", mv: true},
	{name: "all but the database's headers is garbage", do: fill(database, 8192, 1<<16, 0x5a), want: "foreign bytes stand there", mv: true},
	{name: "all but the database's headers is zero", do: fill(database, 8192, 1<<16, 0), want: "foreign bytes stand there", mv: true},
	{name: "first header of the database is zero", do: fill(database, 0, 4096, 0)},
	{name: "second header of the database is zero", do: fill(database, 4096, 4096, 0)},
	{name: "database removed", do: remove(database)},
	{name: "database removed, of much", large: true, do: remove(database), want: "it is not there, and the log begins after change"},
	{name: "database and its directory removed, of much", large: true, do: remove(filepath.Dir(database)), want: "it is not there"},
	{name: "a directory in the database's place", do: replace(database, true), want: "it is no file", mv: true},
	{name: "a file in the state's place", do: replace("etcd/member", false), want: "not a directory"},
}

func cut(name string, size int64) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, name), size)) }
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, name))) }
}

func fill(name string, at, size int, with byte) func(*testing.T, string) {
	return change(name, func(b []byte) {
		for i := range min(size, len(b)-at) {
			b[at+i] = with
		}
	})
}

func flip(name string, at int) func(*testing.T, string) {
	return change(name, func(b []byte) { b[at] ^= 4 })
}

func change(name string, do func([]byte)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		do(b)
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}

func replace(name string, byDirectory bool) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		remove(name)(t, dir)
		if byDirectory {
			must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			return
		}
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
}

func removeNth(i int) func(*testing.T, string) {
	return func(t *testing.T, dir string) { remove(nth(t, dir, i))(t, dir) }
}

// nth is a file of the log; -1 is the last one.
func nth(t *testing.T, dir string, i int) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, filepath.Dir(firstLog), "*.wal"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("the log has %d files, want three: %v", len(paths), err)
	}
	if i < 0 {
		i += len(paths)
	}
	return filepath.Join(filepath.Dir(firstLog), filepath.Base(paths[i]))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestADamagedDirectoryIsSaid: either all is there in spite of the damage, or an error names the file, what was read and
// what to do; nothing hangs, nothing ends the process, and the files are left as they were.
func TestADamagedDirectoryIsSaid(t *testing.T) {
	t.Parallel()
	base := map[bool]string{false: full(t, false), true: full(t, true)}
	for _, d := range damages {
		dir := abandonedDir(t)
		must(t, os.CopyFS(dir, os.DirFS(base[d.large])))
		if d.do != nil {
			d.do(t, dir)
		}
		before := sum(t, dir)
		found, err := reopen(t, dir)
		if d.want == "" {
			if err != nil || found != hosts {
				t.Errorf("%s: %d hosts of %d are there, %v", d.name, found, hosts, err)
			}
			continue
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), d.want) || !strings.Contains(err.Error(), filepath.Join(dir, "etcd", "member")) {
			t.Errorf("%s: %v, want ErrDamaged, the file and %q", d.name, err, d.want)
			continue
		}
		if after := sum(t, dir); after != before {
			t.Errorf("%s: files were changed:\n%s\nbefore:\n%s", d.name, after, before)
		}
		if next := "scaffold state restore FILE --data " + dir; d.mv {
			must(t, os.Rename(filepath.Join(dir, database), filepath.Join(dir, database)+".damaged"))
			if found, failed := reopen(t, dir); failed != nil || found != hosts {
				t.Errorf("%s: %v; after the advised mv %d hosts of %d are there, %v", d.name, err, found, hosts, failed)
			}
		} else if !strings.Contains(err.Error(), next) {
			t.Errorf("%s: %v, want to be told: %s", d.name, err, next)
		}
	}
}

// sum tells one state of a directory from another.
func sum(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "lock" {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&text, "%s %d %x\n", path, len(b), sha256.Sum256(b))
		return err
	}))
	return text.String()
}

// reopen opens the store in the directory as a start does, and says how many hosts are in it.
func reopen(t *testing.T, dir string) (found int, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var s *Store
		if s, err = Open(t.Context(), Config{Dir: dir, Network: "test", Log: slog.New(slog.DiscardHandler)}); err != nil {
			return
		}
		defer s.Close()
		var state State
		state, err = s.Load(context.Background())
		found = len(state.Hosts)
	}()
	select {
	case <-done:
		return found, err
	case <-time.After(2 * startTimeout):
		t.Fatal("Open neither returns nor fails")
	}
	return 0, nil
}

// TestAStartThatTakesLongEndsWhenAsked: a controller ends on SIGTERM also while etcd does not come up.
func TestAStartThatTakesLongEndsWhenAsked(t *testing.T) {
	t.Parallel()
	dir := full(t, false)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if s, err := Open(ctx, Config{Dir: dir, Network: "test", Log: slog.New(slog.DiscardHandler)}); err == nil {
		s.Close()
		t.Error("it opened, and nobody waits for it any more")
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFilesThatGoUnderARunningStoreAreMissed: etcd goes on with what it has open, and all would be gone with it.
func TestFilesThatGoUnderARunningStoreAreMissed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{database, firstLog} {
		dir := full(t, false)
		s := open(t, dir)
		defer s.Close()
		if why := s.Damaged(); why != "" {
			t.Errorf("nothing is wrong, and it says %s", why)
		}
		remove(name)(t, dir)
		if why := s.Damaged(); !strings.Contains(why, filepath.Join(dir, filepath.Dir(name))) || !strings.Contains(why, "scaffold state backup") {
			t.Errorf("%s is gone, and it says %q", name, why)
		}
	}
}
