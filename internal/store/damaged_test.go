package store

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/nstest"
)

// damages are what disks and people do to a data directory.
var damages = map[string]func(t *testing.T, member string){
	"garbage in the log": func(t *testing.T, member string) {
		overwrite(t, member+"/wal/*.wal", func(b []byte) []byte {
			return append(bytes.Repeat([]byte{0xa5}, 4096), b[4096:]...)
		})
	},
	"a flipped bit in the log": func(t *testing.T, member string) {
		overwrite(t, member+"/wal/*.wal", func(b []byte) []byte { b[300] ^= 4; return b })
	},
	"an empty log": func(t *testing.T, member string) {
		overwrite(t, member+"/wal/*.wal", func([]byte) []byte { return nil })
	},
	"garbage in the database": func(t *testing.T, member string) {
		overwrite(t, member+"/snap/db", func(b []byte) []byte { return bytes.Repeat([]byte{0x5a}, len(b)) })
	},
	"half a database": func(t *testing.T, member string) {
		overwrite(t, member+"/snap/db", func(b []byte) []byte { return b[:len(b)/3] })
	},
	"no database": func(t *testing.T, member string) {
		if err := os.Remove(member + "/snap/db"); err != nil {
			t.Fatal(err)
		}
	},
	"a file in the directory's place": func(t *testing.T, member string) {
		if err := os.RemoveAll(member); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(member, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	},
}

func overwrite(t *testing.T, pattern string, change func([]byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing at %s: %v", pattern, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Either all is there in spite of the damage, or an error names the directory. Nothing hangs, and
// nothing ends the process.
// restlessDir is a temporary directory in which an etcd that gave up in the middle of its start may still make a file.
func restlessDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "damaged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nstest.Wait(t, dir, func() error { return os.RemoveAll(dir) }) })
	return dir
}

func TestADamagedDirectoryIsSaid(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // etcd waits for itself now and then
			dir := restlessDir(t)
			s := open(t, dir)
			if err := s.Commit(t.Context(), PutHost(Host{Name: "s1"})); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(dir, "etcd", "member"))
			state, err := reopen(t, dir)
			switch {
			case err == nil && len(state.Hosts) != 1:
				t.Errorf("it opens without an error, and %d of 1 hosts are there", len(state.Hosts))
			case err != nil && !strings.Contains(err.Error(), dir):
				t.Errorf("%v: want the directory in it", err)
			case err != nil:
				t.Log(err)
			}
		})
	}
}

func reopen(t *testing.T, dir string) (State, error) {
	t.Helper()
	type result struct {
		state State
		err   error
	}
	done := make(chan result, 1)
	go func() {
		s, err := Open(Config{Dir: dir, Network: "test", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			done <- result{err: err}
			return
		}
		defer s.Close()
		state, err := s.Load(context.Background())
		done <- result{state, err}
	}()
	select {
	case r := <-done:
		return r.state, r.err
	case <-time.After(2 * startTimeout):
		t.Fatal("Open neither returns nor fails")
	}
	return State{}, nil
}
