package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A changeLog is what etcd's log of changes says: each is written there before it is carried out.
type changeLog struct {
	first, last uint64   // numbers of changes; 0: none
	committed   uint64   // up to here they count
	member      bool     // it begins with who this member is
	copies      []uint64 // numbers of changes that a copy of the database was made at
	file        string   // the last one
	end         int64    // of what it says
}

// whole reports whether every change since the first one of all is in it: the database can be made from it.
func (w changeLog) whole() bool { return w.first == 1 && w.copied() == 0 }

// copied is the change that etcd begins with: those before it are in the database alone.
func (w changeLog) copied() (last uint64) {
	for _, at := range w.copies {
		if at <= w.committed {
			last = max(last, at)
		}
	}
	return last
}

// readLog reads all of a log. A file may end in the middle of a record only where it is the last one: the machine
// stopped there, and nobody was told that this record is saved.
func readLog(dir string) (w changeLog, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		return w, err
	}
	slices.Sort(files) // their names begin with their number, in hexadecimal
	var sum uint32
	for i, file := range files {
		var number, begins uint64
		if n, _ := fmt.Sscanf(filepath.Base(file), "%016x-%016x.wal", &number, &begins); n != 2 {
			continue // etcd leaves it alone, too
		}
		if w.file != "" && number != w.number()+1 {
			return w, damaged(dir, "the file with number %016x is not there: %s follows %s", w.number()+1, filepath.Base(file), filepath.Base(w.file))
		}
		w.file = file
		if sum, err = w.read(file, sum, i == len(files)-1); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *changeLog) number() (n uint64) {
	_, _ = fmt.Sscanf(filepath.Base(w.file), "%016x-", &n) // it was read so
	return n
}

// read takes in one file. sum is the checksum that goes on from file to file.
func (w *changeLog) read(file string, sum uint32, last bool) (uint32, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, damaged(file, "%w", errors.Unwrap(err))
	}
	defer f.Close()
	d := wal.NewDecoder(fileutil.NewFileReader(f))
	rec := new(walpb.Record)
	for {
		switch err := d.Decode(rec); {
		case errors.Is(err, io.EOF), last && errors.Is(err, io.ErrUnexpectedEOF):
			w.end = d.LastOffset()
			return d.LastCRC(), nil
		case err != nil:
			return 0, damaged(file, "byte %d: what follows is no record of it", d.LastOffset())
		}
		if rec.GetType() == wal.CrcType {
			if begins := rec.GetCrc(); sum != 0 && begins != sum || d.LastCRC() != 0 && begins != d.LastCRC() {
				return 0, damaged(file, "byte %d: it does not follow what was written before", d.LastOffset())
			}
			d.UpdateCRC(rec.GetCrc())
			continue
		}
		if err := w.take(rec); err != nil {
			return 0, damaged(file, "byte %d: %w", d.LastOffset(), err)
		}
	}
}

// take takes in one record whose checksum is right.
func (w *changeLog) take(rec *walpb.Record) error {
	switch rec.GetType() {
	case wal.MetadataType:
		w.member = len(rec.Data) > 0
	case wal.EntryType:
		e := new(raftpb.Entry)
		if err := proto.Unmarshal(rec.Data, e); err != nil {
			return err
		}
		switch at := e.GetIndex(); {
		case w.first == 0:
			w.first = at
		case at > w.last+1:
			return fmt.Errorf("change %d follows change %d", at, w.last)
		}
		w.last = e.GetIndex() // what another leader replaced is written again
	case wal.StateType:
		s := new(raftpb.HardState)
		if err := proto.Unmarshal(rec.Data, s); err != nil {
			return err
		}
		w.committed = s.GetCommit()
	case wal.SnapshotType:
		s := new(walpb.Snapshot)
		if err := proto.Unmarshal(rec.Data, s); err != nil {
			return err
		}
		w.copies = append(w.copies, s.GetIndex())
		w.last = max(w.last, s.GetIndex()) // it may come from another member, with all before it
	default:
		return fmt.Errorf("a record of type %d", rec.GetType())
	}
	return nil
}
