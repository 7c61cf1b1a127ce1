// Package record keeps what the instances of a service know of their sessions in a directory that all of
// them share: one small file a session, replaced as a whole, so that a reader finds all of it or none.
//
// A session belongs to the instance that wrote it last. One that was cut off from the network and still
// thinks that it serves takes nothing away from the one that went on.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Dir is the shared directory, seen by one instance.
type Dir struct {
	path  string
	owner string
}

// entry is a session's file.
type entry struct {
	Owner   string
	Session json.RawMessage
}

// Open makes the directory if need be and removes what nobody has touched for the time that is given.
func Open(path string, stale time.Duration) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	d := &Dir{path, fmt.Sprintf("%s/%d/%d", host, os.Getpid(), time.Now().UnixNano())}
	return d, d.sweep(time.Now().Add(-stale))
}

func (d *Dir) sweep(before time.Time) error {
	all, err := os.ReadDir(d.path)
	for _, e := range all {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			os.Remove(filepath.Join(d.path, e.Name()))
		}
	}
	return err
}

// Put records a session under its key and makes it this instance's.
func (d *Dir) Put(key string, session any) error {
	raw, err := json.Marshal(session)
	if err != nil {
		return err
	}
	text, err := json.Marshal(entry{d.owner, raw})
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(d.path, ".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	return errors.Join(err, temp.Close(), d.settle(temp.Name(), key, err))
}

// settle puts a file that was written in its place.
func (d *Dir) settle(temp, key string, err error) error {
	if err != nil {
		os.Remove(temp)
		return nil
	}
	return os.Rename(temp, d.file(key))
}

// Get reads the session of a key; it reports false where there is none.
func (d *Dir) Get(key string, session any) (bool, error) {
	e, err := d.read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Session, session)
	}
	return err == nil, err
}

// Drop ends the session of a key, unless another instance has it now.
func (d *Dir) Drop(key string) error {
	e, err := d.read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || e.Owner != d.owner {
		return err
	}
	return os.Remove(d.file(key))
}

// Keys lists the keys that begin with a prefix.
func (d *Dir) Keys(prefix string) (keys []string, err error) {
	all, err := os.ReadDir(d.path)
	for _, e := range all {
		if key := unescape(e.Name()); strings.HasPrefix(key, prefix) && e.Name()[0] != '.' {
			keys = append(keys, key)
		}
	}
	return keys, err
}

func (d *Dir) read(key string) (e entry, err error) {
	text, err := os.ReadFile(d.file(key))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("session record %s: %w", d.file(key), err)
	}
	return e, nil
}

func (d *Dir) file(key string) string { return filepath.Join(d.path, escape(key)) }

// Keys are addresses and ports: of what file names cannot have there is only the slash.
func escape(key string) string    { return strings.ReplaceAll(key, "/", "_") }
func unescape(name string) string { return strings.ReplaceAll(name, "_", "/") }
