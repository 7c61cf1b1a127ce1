package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"scaffold.dev/scaffold/internal/api/versions"
)

// backupFormat is what a backup's first line says of itself.
const backupFormat = "scaffold state"

// maxBackupLine bounds one record of a backup: etcd takes none that is larger.
const maxBackupLine = 4 << 20

// ErrBackup says that a file is no backup, or not a whole one.
var ErrBackup = errors.New("not a backup of a network's state")

// A BackupHeader is the first line of a backup.
type BackupHeader struct {
	Format  string `json:"format"`
	Schema  uint32 `json:"schema"` // the form of the records
	Network string `json:"network"`
	ID      string `json:"id"` // of the network
	Epoch   uint64 `json:"epoch"`
	Made    string `json:"made"`    // when
	Version string `json:"version"` // of scaffold
	Records int    `json:"records"`
}

// A backupRecord is each further line but the last.
type backupRecord struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// A backupEnd is the last line: the sum of all bytes before it.
type backupEnd struct {
	SHA256 string `json:"sha256"`
}

// A Backup is one that was read whole.
type Backup struct {
	BackupHeader
	State   State
	records []backupRecord
}

// Kinds counts the records by kind.
func (b *Backup) Kinds() map[string]int {
	kinds := map[string]int{}
	for _, r := range b.records {
		kind, _, _ := strings.Cut(r.Key, "/")
		kinds[kind]++
	}
	return kinds
}

// passing are records that say who runs, or what is being written, not what the network is.
func passing(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	return kind == "leader" || kind == "controller" || kind == "restored" || kind == "restoring" || kind == staging || kind == probe || kind+"/" == staged
}

// Backup writes all that is stored, as of one revision: lines of JSON, the first of which says whose state it is, and
// the last the sum of the others.
func (s *Store) Backup(ctx context.Context, made, version string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	answer, err := s.etcd().Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("store: read %s: %w", s, err)
	}
	head := BackupHeader{Format: backupFormat, Schema: versions.Schema().To, Network: s.cfg.Network, Made: made, Version: version}
	var state State
	var records []backupRecord
	all := make(map[string][]byte, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		all[strings.TrimPrefix(string(kv.Key), s.prefix)] = kv.Value
	}
	if all, err = settled(all); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if passing(key) {
			continue
		}
		if err := state.read(key, all[key]); err != nil {
			return err
		}
		records = append(records, backupRecord{key, all[key]})
	}
	head.ID, head.Epoch, head.Records = state.ID, state.Epoch, len(records)
	sum, out := sha256.New(), bufio.NewWriter(to)
	lines := json.NewEncoder(io.MultiWriter(out, sum))
	if err := lines.Encode(head); err != nil {
		return err
	}
	for _, r := range records {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	if err := lines.Encode(backupEnd{hex.EncodeToString(sum.Sum(nil))}); err != nil {
		return err
	}
	return out.Flush()
}

// ReadBackup reads and checks a backup. Errors say what is wrong with the file and in which line.
func ReadBackup(from io.Reader) (*Backup, error) {
	r := &backupReader{lines: bufio.NewReader(from), sum: sha256.New()}
	b := new(Backup)
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(line, &b.BackupHeader) != nil || b.Format != backupFormat {
		return nil, fmt.Errorf("%w: its first line does not say %q", ErrBackup, backupFormat)
	}
	reads := versions.Schema()
	if !reads.Has(b.Schema) {
		return nil, fmt.Errorf("%w that this version reads: it has schema %d, made by scaffold %.40q, and %v is known here: restore it with that version", ErrBackup, b.Schema, b.Version, reads)
	}
	for {
		before := hex.EncodeToString(r.sum.Sum(nil))
		if line, err = r.next(); err != nil {
			return nil, err
		}
		var record struct {
			backupRecord
			backupEnd
		}
		switch err := json.Unmarshal(line, &record); {
		case err != nil || record.Key == "" && record.SHA256 == "":
			return nil, fmt.Errorf("%w: line %d cannot be read: it was damaged", ErrBackup, r.line)
		case record.SHA256 == "":
			if b.Schema == reads.To {
				if err := b.State.read(record.Key, record.Value); err != nil {
					return nil, fmt.Errorf("%w: line %d: %w", ErrBackup, r.line, err)
				}
			}
			b.records = append(b.records, record.backupRecord)
		case record.SHA256 != before || len(b.records) != b.Records:
			return nil, fmt.Errorf("%w: its content does not fit the sum in line %d: it was changed or damaged", ErrBackup, r.line)
		case b.Schema != reads.To:
			if err := b.readFormer(reads.To); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrBackup, err)
			}
			return b, r.end()
		default:
			return b, r.end()
		}
	}
}

// readFormer reads the state of records of a form of before, as the controller will that starts on them. They are
// restored as they are.
func (b *Backup) readFormer(to uint32) error {
	records := make(map[string][]byte, len(b.records))
	for _, r := range b.records {
		records[r.Key] = r.Value
	}
	changes, err := changesBetween(b.Schema, to, records)
	if err != nil {
		return fmt.Errorf("from schema %d to %w", b.Schema, err)
	}
	maps.Copy(records, changes)
	for _, key := range slices.Sorted(maps.Keys(records)) {
		if records[key] == nil {
			continue // taken away
		}
		if err := b.State.read(key, records[key]); err != nil {
			return err
		}
	}
	return nil
}

// A backupReader takes lines and adds them up.
type backupReader struct {
	lines *bufio.Reader
	sum   hash.Hash
	line  int
}

func (r *backupReader) next() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			r.sum.Write(line)
			return line, nil
		case len(line) > maxBackupLine:
			return nil, fmt.Errorf("%w: line %d is longer than any record", ErrBackup, r.line)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: it ends in line %d, before its last line: it was cut off", ErrBackup, r.line)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *backupReader) end() error {
	if rest, _ := r.lines.Peek(1); len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("%w: more follows its last line, %d", ErrBackup, r.line)
	}
	return nil
}
