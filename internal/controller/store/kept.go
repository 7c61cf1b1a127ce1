package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// HasMember reports whether a controller has kept its state in a directory before.
func HasMember(dir string) bool { return exists(logOf(filepath.Clean(dir))) }

// Kept are the members of the cluster as the directory had them before this start; none where it was empty. The one
// member of a controller that was alone is at an address of this machine.
func (s *Store) Kept() []Peer { return s.kept }

// membersBucket is where etcd keeps them, by number (its storage/schema).
const membersBucket = "members"

// keptLock is how long somebody may hold the database who should not: it was claimed.
const keptLock = time.Second

// kept reads who the members are from a database that was found whole, before etcd has it.
func kept(dir string) (list []Peer, err error) {
	path := databaseOf(dir)
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: keptLock})
	if err != nil {
		return nil, fmt.Errorf("store: read %s: %w", path, err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(membersBucket))
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(_, value []byte) error {
			var m struct {
				Name string   `json:"name"`
				URLs []string `json:"peerURLs"`
				New  bool     `json:"isLearner"`
			}
			if err := json.Unmarshal(value, &m); err != nil {
				return fmt.Errorf("store: a member in %s: %w", path, err)
			}
			list = append(list, Peer{Name: m.Name, URL: strings.Join(m.URLs, ","), New: m.New})
			return nil
		})
	})
	slices.SortFunc(list, func(a, b Peer) int { return strings.Compare(a.Name+a.URL, b.Name+b.URL) })
	return list, errors.Join(err, db.Close())
}
