package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scaffold.dev/scaffold/internal/controller/store/pages"
)

// ErrDamaged says that the files of the state cannot be used. Nothing was changed.
var ErrDamaged = errors.New("damaged")

// A damage names the file and what was read.
type damage struct {
	path  string
	what  error
	spare bool // the log alone has everything
}

func (d *damage) Error() string        { return fmt.Sprintf("%s is %v: %v", d.path, ErrDamaged, d.what) }
func (d *damage) Is(target error) bool { return target == ErrDamaged } // it is asked about a sentinel
func (d *damage) Unwrap() error        { return d.what }

func damaged(path, format string, args ...any) error {
	return &damage{path: path, what: fmt.Errorf(format, args...)}
}

// The files of a member, as etcd calls them.
func logOf(dir string) string      { return filepath.Join(dir, "etcd", "member", "wal") }
func databaseOf(dir string) string { return filepath.Join(dir, "etcd", "member", "snap", "db") }

// intact looks at what etcd is about to believe, and reads all of it once: etcd ends the process on what it cannot
// read, or comes up with half of it, or waits for ever.
func intact(dir string) error {
	w, err := readLog(logOf(dir))
	if err != nil {
		return err
	}
	path := databaseOf(dir)
	db, found, err := readDatabase(path)
	if err != nil {
		if d := new(damage); errors.As(err, &d) {
			d.spare = w.file != "" && w.member && w.whole()
		}
		return err
	}
	switch copied := w.copied(); {
	case w.file == "" && db.Applied == 0:
		return nil // it is new
	case w.file == "":
		return damaged(logOf(dir), "no file of the log is there, and the database holds %d changes", db.Applied)
	case !w.member:
		return damaged(w.file, "it ends at byte %d, before it says whose it is", w.end)
	case db.Applied > w.last || w.committed > w.last:
		return damaged(w.file, "it ends at byte %d with change %d, and there were %d", w.end, w.last, max(db.Applied, w.committed))
	case w.first > copied+1:
		return damaged(logOf(dir), "it begins with change %d, and change %d is wanted: its first files are not there", w.first, copied+1)
	case db.Applied < copied && !exists(filepath.Join(filepath.Dir(path), fmt.Sprintf("%016x.snap.db", copied))):
		if !found {
			return damaged(path, "it is not there, and the log begins after change %d", copied)
		}
		return damaged(path, "it is an old one: it ends with change %d, and the log begins after change %d", db.Applied, copied)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readDatabase checks the database, if there is one: etcd makes a new one where there is none, or an empty file.
func readDatabase(path string) (db pages.Database, found bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return db, false, nil
	}
	if err != nil {
		return db, false, damaged(path, "%w", errors.Unwrap(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return db, false, damaged(path, "%w", errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return db, false, damaged(path, "it is no file (%v)", info.Mode().Type())
	case info.Size() == 0:
		return db, false, nil
	}
	if db, err = pages.Check(f, info.Size()); err != nil {
		return db, true, damaged(path, "%w", err)
	}
	return db, true, nil
}

// mend says what to do about damaged files, in one line: first what loses nothing.
func (s *Store) mend(err error) error {
	d := new(damage)
	if !errors.As(err, &d) {
		return err
	}
	etcd := filepath.Join(s.cfg.Dir, "etcd")
	next := fmt.Sprintf("move %s away, put the last backup in (`scaffold state restore FILE --data %s`) and start again", etcd, s.cfg.Dir)
	switch {
	case d.spare:
		next = fmt.Sprintf("its log is whole and has everything: `mv %s %[1]s.damaged` and start again", databaseOf(s.cfg.Dir))
	case s.cfg.Cluster != nil:
		next = fmt.Sprintf("the other controllers have the same: run `scaffold controller remove %s` at one of them, move %s away and start with --join; where none of them is left, %s", s.cfg.Cluster.Name, etcd, next)
	}
	return fmt.Errorf("store: %w; nothing was changed; %s (docs/operate.md#a-damaged-store)", err, next)
}
