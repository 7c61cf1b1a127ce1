package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A transaction of etcd takes a bounded number of changes and of bytes. Commit promises more than that holds: what is
// larger is written beside the records first (staged/KEY), then one transaction says that it counts, then it is put in
// its places. Who finds it half way, after a crash or a change of leader, goes on: Begin does, and Load reads the
// records as they will be. It is the way of a migration (schema.go), so that versions of before go on with it too.
const (
	elsewhereOps = 100     // etcd refuses more than 128 changes unless it is told otherwise (--max-txn-ops)
	embeddedOps  = 4096    // ours is told otherwise: this many hosts that come at once are one write
	requestBytes = 1 << 20 // etcd refuses requests of more than 1.5 MiB
)

// errNotSaved is in the errors of commits of which nothing counts.
var errNotSaved = errors.New("nothing was saved")

// Commit makes all changes durable, or none and says why. It is doubtful which only where etcd did not answer the one
// transaction that decides: Doubtful(err) says so. Of several changes of one record the last counts.
func (s *Store) Commit(ctx context.Context, changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := encode(lastOfEach(changes))
	if err != nil || len(records) == 0 {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	if s.left {
		if err := s.settleLeft(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNotSaved, err)
		}
	}
	pieces := s.pieces(records)
	if len(pieces) == 1 {
		_, err := s.writeIf(ctx, pieces[0])
		return err
	}
	return s.staged(ctx, records)
}

// inPieces writes changes in order, a transaction after the other: an error leaves the first ones written. It is for
// those who have said before, in the store, that what they write does not count yet.
func (s *Store) inPieces(ctx context.Context, changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := encode(changes)
	if err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	return s.writeAll(ctx, records)
}

func (s *Store) writeAll(ctx context.Context, records []record, conditions ...clientv3.Cmp) error {
	for _, piece := range s.pieces(records) {
		if _, err := s.writeIf(ctx, piece, conditions...); err != nil {
			return err
		}
	}
	return nil
}

// Each write of a commit in several transactions has a condition beside that of the term: a write that was given up may
// still be done by etcd, after others. One that stages holds only while nothing else has begun to (the record staging
// names who did), one that puts in place only until that is over (each end writes the schema's record anew).

// staged commits what is more than a transaction holds.
func (s *Store) staged(ctx context.Context, records []record) error {
	now, revision, err := s.form(ctx)
	id := newID()
	if err == nil && now.Under { // a write that was given up was done
		s.left = true
		err = s.settleLeft(ctx)
	}
	if err == nil {
		now, revision, err = s.form(ctx)
	}
	if err == nil {
		err = s.stageAll(ctx, id, revision, records)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSaved, err)
	}
	under := now
	under.Under = true
	s.left = true
	revision, err = s.writeIf(ctx, []record{formRecord(under)}, s.formIs(revision), s.stagingIs(id))
	if err != nil {
		return err
	}
	if err := s.putInPlace(ctx, now, revision, records); err != nil {
		s.cfg.Log.Warn("what was saved is not in its place yet: the next write or the next start puts it there", "error", err)
		return nil // it counts
	}
	s.left = false
	return nil
}

// stageAll writes records beside those that count. What a commit that came to nothing has left goes first.
func (s *Store) stageAll(ctx context.Context, id string, revision int64, records []record) error {
	if _, err := s.writeIf(ctx, []record{{key: staged, all: true}, {key: staging, value: []byte(strconv.Quote(id))}}, s.formIs(revision)); err != nil {
		return err
	}
	beside := make([]record, len(records))
	for i, r := range records {
		beside[i] = record{key: staged + r.key, value: raw(r.value)}
	}
	return s.writeAll(ctx, beside, s.formIs(revision), s.stagingIs(id))
}

// putInPlace puts what counts in its places, and ends the commit.
func (s *Store) putInPlace(ctx context.Context, f form, revision int64, records []record) error {
	if err := s.writeAll(ctx, records, s.formIs(revision)); err != nil {
		return err
	}
	f.Under = false
	_, err := s.writeIf(ctx, []record{{key: staged, all: true}, {key: staging}, formRecord(f)}, s.formIs(revision))
	return err
}

// settleLeft goes on with a commit whose end this process has not seen.
func (s *Store) settleLeft(ctx context.Context) error {
	f, revision, err := s.form(ctx)
	if err == nil && f.Under {
		var all map[string][]byte
		if all, err = s.records(ctx); err == nil { // staged records do not change while the form is under way
			err = s.putInPlace(ctx, f, revision, stagedIn(all))
		}
	}
	if err == nil {
		s.left = false
	}
	return err
}

// staging is the record of who stages.
const staging = "staging"

func (s *Store) stagingIs(id string) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.prefix+staging), "=", strconv.Quote(id))
}

// formIs holds as long as nobody has written the schema's record since the revision.
func (s *Store) formIs(revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.prefix+schemaKey), "=", revision)
}

// stagedIn are the staged records, for their places.
func stagedIn(all map[string][]byte) (list []record) {
	for key, value := range all {
		place, ok := strings.CutPrefix(key, staged)
		switch {
		case !ok:
		case string(value) == "null":
			list = append(list, record{key: place})
		default:
			list = append(list, record{key: place, value: value})
		}
	}
	return list
}

// settled are the records as they are once a commit that counts is in its place.
func settled(all map[string][]byte) (map[string][]byte, error) {
	f, err := formOf(all)
	if err != nil || !f.Under {
		return all, err
	}
	now := maps.Clone(all)
	maps.DeleteFunc(now, func(key string, _ []byte) bool { return strings.HasPrefix(key, staged) || key == staging })
	for _, r := range stagedIn(all) {
		if now[r.key] = r.value; r.value == nil {
			delete(now, r.key)
		}
	}
	f.Under = false
	now[schemaKey] = formRecord(f).value
	return now, nil
}

// A record is a change as etcd takes it.
type record struct {
	key   string
	value []byte // nil: taken away
	all   bool   // key is the beginning of those that are taken away
}

func encode(changes []Change) ([]record, error) {
	list := make([]record, len(changes))
	for i, c := range changes {
		list[i].key = c.key
		if c.value == nil {
			continue
		}
		value, err := json.Marshal(c.value)
		if err != nil {
			return nil, fmt.Errorf("store: encode %s: %w", c.key, err)
		}
		list[i].value = value
	}
	return list, nil
}

func formRecord(f form) record {
	value, _ := json.Marshal(f) // numbers and text
	return record{key: schemaKey, value: value}
}

// form is what is stored of the records' form, and since which revision; in a store that nobody began with, this
// version's.
func (s *Store) form(ctx context.Context) (f form, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	answer, err := s.etcd().Get(ctx, s.prefix+schemaKey)
	if err != nil {
		return f, 0, fmt.Errorf("store: read %s: %w", s, err)
	}
	if len(answer.Kvs) == 0 {
		return thisForm(s.cfg.Version), 0, nil
	}
	f, err = formOf(map[string][]byte{schemaKey: answer.Kvs[0].Value})
	return f, answer.Kvs[0].ModRevision, err
}

// lastOfEach leaves the last change of each record; etcd takes one in a transaction.
func lastOfEach(changes []Change) []Change {
	at := make(map[string]int, len(changes))
	for i, c := range changes {
		at[c.key] = i
	}
	if len(at) == len(changes) {
		return changes
	}
	var list []Change
	for i, c := range changes {
		if at[c.key] == i {
			list = append(list, c)
		}
	}
	return list
}

// pieces cuts records into what one transaction holds each.
func (s *Store) pieces(records []record) (pieces [][]record) {
	most := embeddedOps
	if s.server == nil {
		most = elsewhereOps
	}
	if s.cfg.ops > 0 {
		most = s.cfg.ops
	}
	from, bytes := 0, 0
	for i, r := range records {
		size := len(s.prefix) + len(r.key) + len(r.value)
		if i > from && (i-from == most || bytes+size > requestBytes) {
			pieces = append(pieces, records[from:i])
			from, bytes = i, 0
		}
		bytes += size
	}
	if from < len(records) {
		pieces = append(pieces, records[from:])
	}
	return pieces
}

// writeIf is one transaction, of the term that runs, and its revision.
func (s *Store) writeIf(ctx context.Context, records []record, conditions ...clientv3.Cmp) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	ops := make([]clientv3.Op, len(records))
	for i, r := range records {
		switch {
		case r.all:
			ops[i] = clientv3.OpDelete(s.prefix+r.key, clientv3.WithPrefix())
		case r.value == nil:
			ops[i] = clientv3.OpDelete(s.prefix + r.key)
		default:
			ops[i] = clientv3.OpPut(s.prefix+r.key, string(r.value))
		}
	}
	guard, err := s.guard()
	if err != nil {
		return 0, err
	}
	answer, err := s.etcd().Txn(ctx).If(append(guard, conditions...)...).Then(ops...).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("store: write %s: %w%s", s, err, s.hint())
	case !answer.Succeeded && len(guard) == 0:
		return 0, fmt.Errorf("store: write %s: a write that had been given up was done meanwhile: %w of this one", s, errNotSaved)
	case !answer.Succeeded:
		return 0, fmt.Errorf("store: %w any more, another one does: nothing was saved", ErrNotLeader)
	}
	if s.cfg.wrote != nil {
		s.cfg.wrote()
	}
	return answer.Header.Revision, nil
}

// Probe shows whether what is written is saved, by a record that says nothing: an etcd that is full refuses only what
// makes it larger. Writes of before that were given up are done by then, or never will be.
func (s *Store) Probe(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	_, err := s.writeIf(ctx, []record{{key: probe, value: []byte("true")}})
	if err == nil && s.left {
		err = s.settleLeft(ctx)
	}
	return err
}

// probe is the record of Probe.
const probe = "probe"

// Doubtful reports whether an error of Commit leaves it open what was saved: etcd did not answer, and may have done it.
func Doubtful(err error) bool {
	return err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrFull) && !errors.Is(err, errNotSaved)
}

func (s *Store) hint() string {
	if s.server != nil {
		if why := s.server.broken.Load(); why != nil {
			return ": " + *why
		}
	}
	return ""
}
