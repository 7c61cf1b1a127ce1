package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Capacity is the size of the disk under an embedded store in bytes; 0 where it cannot be looked at.
func (s *Store) Capacity() uint64 {
	var fsys unix.Statfs_t
	if len(s.cfg.Endpoints) > 0 || unix.Statfs(s.cfg.Dir, &fsys) != nil {
		return 0
	}
	return fsys.Blocks * uint64(fsys.Bsize)
}

// Broken is why the embedded etcd gave up; "" while it runs.
func (s *Store) Broken() string {
	server := s.now.Load()
	if server == nil {
		return ""
	}
	if why := server.broken.Load(); why != nil {
		return *why
	}
	return ""
}

// Damaged says what is wrong with the files of an embedded store: at its last start, or by now, since a file that is
// removed or cut short under a running etcd is missed at its next start only.
func (s *Store) Damaged() string {
	if len(s.cfg.Endpoints) > 0 {
		return ""
	}
	if why := s.harm.Load(); why != nil {
		return *why
	}
	if s.now.Load() == nil {
		return ""
	}
	for _, err := range []error{present(logOf(s.cfg.Dir)+"/*.wal", 1), present(databaseOf(s.cfg.Dir), databaseLeast)} {
		if err != nil {
			return brief(err)
		}
	}
	return ""
}

// brief leaves out that it is damaged, for those who say that themselves.
func brief(err error) string {
	if d := new(damage); errors.As(err, &d) {
		return d.path + ": " + d.what.Error()
	}
	return err.Error()
}

// databaseLeast is the size of the smallest database: two headers, a list and a leaf.
const databaseLeast = 4 << 12

func present(pattern string, least int64) error {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return damaged(pattern, "it was removed while the controller runs: what is saved now is lost when it stops; make a backup at once (`scaffold state backup FILE`)")
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Size() < least {
			return damaged(path, "it was cut to %d bytes while the controller runs; make a backup at once (`scaffold state backup FILE`)", info.Size())
		}
	}
	return nil
}

// Applied is the number of the last change that this member of the embedded etcd's cluster knows; 0 where it does not
// run. The others are ahead of it, or behind, by the difference.
func (s *Store) Applied() uint64 {
	if server := s.now.Load(); server != nil {
		return server.server.Server.AppliedIndex()
	}
	return 0
}

// Peers are the members of the embedded etcd's cluster as this one knows them, by name: what Members asks, also where
// too few answer. nil where etcd is elsewhere.
func (s *Store) Peers() (list []Peer) {
	server := s.now.Load()
	if s.cfg.Cluster == nil || server == nil {
		return nil
	}
	for _, m := range server.server.Server.Cluster().Members() {
		list = append(list, Peer{Name: m.Name, URL: strings.Join(m.PeerURLs, ","), New: m.IsLearner})
	}
	slices.SortFunc(list, func(a, b Peer) int { return strings.Compare(a.Name+a.URL, b.Name+b.URL) })
	return list
}
