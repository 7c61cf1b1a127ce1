package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/api/versions"
)

// The form of the records has a number, which is stored with them; without one it is 0. What an old version may leave
// alone, a new kind of record or a new field, changes no number. A new number comes with a migration here.
//
// A migration is kept from being seen half done: first the records are written beside those that hold, with those
// that they replace; then, in one write, the new number with the word that it is under way, from which on older
// versions refuse the store; then they are put in their places. Whoever starts after a crash begins anew before that
// one write, and goes on after it.

// ErrSchema is in the error of a store in a form that this version does not read.
var ErrSchema = errors.New("form of another version")

const (
	schemaKey = "schema"
	staged    = "staged/" // before the keys of new records while a migration is under way
	former    = "former/" // before the number and the keys of records that a migration has replaced
)

// A migration makes of the records of the form before those of its own that differ; nil takes one away.
type migration func(records map[string][]byte) (map[string][]byte, error)

// migrations are by the number of the form that they make. Form 1 has nothing but its number.
var migrations = map[uint32]migration{}

// A form is the record of the schema.
type form struct {
	Number  uint32 `json:"number"`
	Version string `json:"version,omitempty"` // of the program that made it so, for people
	Under   bool   `json:"under_way,omitempty"`
}

func formOf(records map[string][]byte) (f form, err error) {
	text, ok := records[schemaKey]
	if !ok {
		return f, nil
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("store: the record %s cannot be read: %w", schemaKey, err)
	}
	return f, nil
}

// thisForm is that of this version.
func thisForm(version string) form { return form{Number: versions.Schema().To, Version: version} }

// check refuses records of a form that is not among those that this version reads.
func (s *Store) check(records map[string][]byte, reads versions.Range) error {
	f, err := formOf(records)
	switch {
	case err != nil:
		return err
	case f.Number > reads.To:
		return fmt.Errorf("store: %w: what is stored in %s is of schema %d, and this version reads %v: start version %s or a later one, or restore a backup that was made before it ran",
			ErrSchema, s, f.Number, reads, f.madeBy())
	case f.Number < reads.From:
		return fmt.Errorf("store: %w: what is stored in %s is of schema %d, and this version reads %v: start a version between that one and this one first, which brings it up",
			ErrSchema, s, f.Number, reads)
	}
	return nil
}

func (f form) madeBy() string {
	if f.Version == "" {
		return "that wrote it"
	}
	return f.Version
}

// upgrade brings what is stored into this version's form, once.
func (s *Store) upgrade(ctx context.Context) error {
	records, err := s.records(ctx)
	if err != nil {
		return err
	}
	reads := versions.Schema()
	if err := s.check(records, reads); err != nil {
		return err
	}
	f, err := formOf(records)
	switch {
	case err != nil:
		return err
	case f.Under:
		s.cfg.Log.Warn("goes on with a change of what is stored that was interrupted", "schema", f.Number)
		return s.settle(ctx, f, records)
	case f.Number == reads.To:
		return nil
	}
	return s.migrate(ctx, f.Number, reads.To, records)
}

func (s *Store) migrate(ctx context.Context, from, to uint32, records map[string][]byte) error {
	changes, err := changesBetween(from, to, records)
	if err != nil {
		return fmt.Errorf("store: bring what is stored in %s from schema %d to %d: %w; nothing has been changed", s, from, to, err)
	}
	f := form{Number: to, Version: s.cfg.Version}
	if len(changes) == 0 {
		return s.Commit(ctx, Change{schemaKey, f})
	}
	s.cfg.Log.Info("brings what is stored into this version's form; what it replaces is kept beside it", "from", from, "to", to, "records", len(changes))
	if err := s.stage(ctx, from, records, changes); err != nil {
		return err
	}
	f.Under = true
	if err := s.Commit(ctx, Change{schemaKey, f}); err != nil {
		return err
	}
	records, err = s.records(ctx)
	if err != nil {
		return err
	}
	return s.settle(ctx, f, records)
}

// changesBetween runs the migrations one after the other; each sees what those before it made.
func changesBetween(from, to uint32, records map[string][]byte) (map[string][]byte, error) {
	now, all := maps.Clone(records), map[string][]byte{}
	maps.DeleteFunc(now, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, staged) || strings.HasPrefix(key, former)
	})
	for n := from + 1; n <= to; n++ {
		if migrations[n] == nil {
			continue
		}
		changes, err := migrations[n](maps.Clone(now))
		if err != nil {
			return nil, fmt.Errorf("to %d: %w", n, err)
		}
		for key, value := range changes {
			all[key] = value
			if now[key] = value; value == nil {
				delete(now, key)
			}
		}
	}
	return all, nil
}

// stage writes the changes beside the records, with what they replace. What an interrupted one has left goes.
func (s *Store) stage(ctx context.Context, from uint32, records, changes map[string][]byte) error {
	var list []Change
	for key := range records {
		if old, ok := strings.CutPrefix(key, staged); ok && !has(changes, old) {
			list = append(list, Change{key, nil})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		list = append(list, Change{staged + key, raw(changes[key])})
		if before, ok := records[key]; ok {
			list = append(list, Change{fmt.Sprintf("%s%d/%s", former, from, key), raw(before)})
		}
	}
	return s.inPieces(ctx, list...)
}

func has(m map[string][]byte, key string) bool { _, ok := m[key]; return ok }

// raw is a stored value as one to store; null stands for one that is taken away.
func raw(value []byte) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// settle puts the staged records in their places, and ends the migration.
func (s *Store) settle(ctx context.Context, f form, records map[string][]byte) error {
	var put, clear []Change
	for _, key := range slices.Sorted(maps.Keys(records)) {
		place, ok := strings.CutPrefix(key, staged)
		if !ok {
			continue
		}
		clear = append(clear, Change{key, nil})
		if value := records[key]; string(value) == "null" {
			put = append(put, Change{place, nil})
		} else {
			put = append(put, Change{place, raw(value)})
		}
	}
	if err := s.inPieces(ctx, put...); err != nil {
		return err
	}
	f.Under = false
	return s.inPieces(ctx, append(clear, Change{schemaKey, f})...) // in this order: what is cleared is in its place
}
