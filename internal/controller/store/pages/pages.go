package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout: bbolt's internal/common (page.go, meta.go, bucket.go), in the machine's byte order.
const (
	magic       = 0xed0cdaed
	version     = 2
	headerSize  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // of a leaf: flags 4, at 4, key 4, value 4; of a branch: at 4, key 4, page 8
	metaSize    = 64 // magic, version, page size, flags 4 each; root, sequence, freelist, pages, transaction, checksum 8 each
	bucketSize  = 16 // root 8, sequence 8

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01

	noFreelist = ^uint64(0) // it is made anew at each start

	minPageSize = 1 << 10 // what bbolt tries: 1 KiB to 32 MiB
	maxPageSize = 1 << 25
)

var order = binary.NativeEndian

// A Database is what was found in a file.
type Database struct {
	Size    int64  // that the file has to have
	Applied uint64 // the last change of the log that is in it; 0: none
}

// Check reads every page that can be reached.
func Check(file io.ReaderAt, size int64) (Database, error) {
	m, err := newest(file, size)
	if err != nil {
		return Database{}, err
	}
	c := checker{file: file, page: m.page, pages: m.pages, seen: make(map[uint64]bool)}
	db := Database{Size: int64(m.page) * int64(m.pages)}
	if size < db.Size {
		return db, fmt.Errorf("it ends after %d bytes, and by its own count it has %d", size, db.Size)
	}
	if m.freelist != noFreelist {
		if err := c.freelist(m.freelist); err != nil {
			return db, err
		}
	}
	err = c.tree(m.root, nil)
	db.Applied = c.applied
	return db, err
}

// A meta is one of the two descriptions of a database, which take turns.
type meta struct {
	page                               uint64 // size of one
	root, freelist, pages, transaction uint64
}

// newest is the description that bbolt will go by: the one of the last transaction that is whole.
func newest(file io.ReaderAt, size int64) (meta, error) {
	first, why := metaAt(file, 0)
	if why == nil {
		second, err := metaAt(file, int64(first.page))
		if err == nil && second.page == first.page && second.transaction > first.transaction {
			return second, nil
		}
		return first, nil
	}
	for at := int64(minPageSize); at <= maxPageSize && at < size; at *= 2 {
		if m, err := metaAt(file, at); err == nil && int64(m.page) == at {
			return m, nil
		}
	}
	return meta{}, fmt.Errorf("neither of its two headers can be read (the first one: %w)", why)
}

func metaAt(file io.ReaderAt, at int64) (m meta, err error) {
	b := make([]byte, headerSize+metaSize)
	if _, err := file.ReadAt(b, at); err != nil {
		return m, readError(err, at)
	}
	b = b[headerSize:]
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	switch {
	case order.Uint32(b) != magic:
		return m, fmt.Errorf("byte %d: what stands there is none", at)
	case order.Uint32(b[4:]) != version:
		return m, fmt.Errorf("byte %d: it is of version %d, want %d", at, order.Uint32(b[4:]), version)
	case order.Uint64(b[metaSize-8:]) != sum.Sum64():
		return m, fmt.Errorf("byte %d: its checksum is wrong", at)
	}
	m = meta{page: uint64(order.Uint32(b[8:])), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), transaction: order.Uint64(b[48:])}
	if m.page < minPageSize || m.page > maxPageSize || m.page&(m.page-1) != 0 || m.pages < 2 || m.pages > 1<<40/m.page {
		return m, fmt.Errorf("byte %d: %d pages of %d bytes", at, m.pages, m.page)
	}
	return m, nil
}

// readError is one in a line: that a file ends is not worth the name that Go has for it.
func readError(err error, at int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("byte %d: the file ends before", at)
	}
	return fmt.Errorf("byte %d: %w", at, err)
}

// A checker walks from the root to all leaves.
type checker struct {
	file        io.ReaderAt
	page, pages uint64
	seen        map[uint64]bool
	applied     uint64
}

func (c *checker) wrong(id uint64, format string, args ...any) error {
	return fmt.Errorf("byte %d (page %d): %s", id*c.page, id, fmt.Sprintf(format, args...))
}

// read is a page with those that continue it. No page has two places.
func (c *checker) read(id uint64) (flags uint16, b []byte, err error) {
	if id < 2 || id >= c.pages {
		return 0, nil, c.wrong(id, "something refers to it, and there are %d pages", c.pages)
	}
	head := make([]byte, headerSize)
	if _, err := c.file.ReadAt(head, int64(id*c.page)); err != nil {
		return 0, nil, readError(err, int64(id*c.page))
	}
	more := uint64(order.Uint32(head[12:]))
	switch {
	case order.Uint64(head) != id:
		return 0, nil, c.wrong(id, "foreign bytes stand there")
	case id+more >= c.pages:
		return 0, nil, c.wrong(id, "it goes on beyond the end")
	}
	for i := id; i <= id+more; i++ {
		if c.seen[i] {
			return 0, nil, c.wrong(i, "it is used twice")
		}
		c.seen[i] = true
	}
	b = make([]byte, (more+1)*c.page)
	if _, err := c.file.ReadAt(b, int64(id*c.page)); err != nil {
		return 0, nil, readError(err, int64(id*c.page))
	}
	return order.Uint16(head[8:]), b, nil
}

func (c *checker) freelist(id uint64) error {
	flags, b, err := c.read(id)
	if err != nil {
		return err
	}
	count, room := uint64(order.Uint16(b[10:])), uint64(len(b)-headerSize)/8
	if count == 0xffff && room > 0 { // more than fit the header: the first entry says how many
		count, room = order.Uint64(b[headerSize:]), room-1
	}
	if flags != freelistPage || count > room {
		return c.wrong(id, "it is no list of free pages")
	}
	return nil
}

// tree checks a page of a bucket and those below it. path are the names of the buckets that it is in.
func (c *checker) tree(id uint64, path [][]byte) error {
	flags, b, err := c.read(id)
	if err != nil {
		return err
	}
	switch flags {
	case leafPage:
		return c.leaf(id, b, path)
	case branchPage:
	default:
		return c.wrong(id, "it is neither a branch nor a leaf")
	}
	list, err := c.elements(id, b, false)
	for _, e := range list {
		if err == nil {
			err = c.tree(e.child, path)
		}
	}
	return err
}

func (c *checker) leaf(id uint64, b []byte, path [][]byte) error {
	list, err := c.elements(id, b, true)
	if err != nil {
		return err
	}
	for _, e := range list {
		switch {
		case e.flags&bucketFlag != 0:
			err = c.bucket(id, e.value, append(path[:len(path):len(path)], e.key))
		case len(path) == 1 && string(path[0]) == "meta" && string(e.key) == "consistent_index": // etcd's storage/schema
			if len(e.value) != 8 {
				return c.wrong(id, "the number of the last change has %d bytes", len(e.value))
			}
			c.applied = binary.BigEndian.Uint64(e.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket checks one: a tree of its own, or a page within the value where it is small.
func (c *checker) bucket(id uint64, value []byte, path [][]byte) error {
	if len(value) < bucketSize {
		return c.wrong(id, "the bucket %q has %d bytes", path[len(path)-1], len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return c.tree(root, path)
	}
	value = value[bucketSize:]
	if len(value) < headerSize || order.Uint16(value[8:]) != leafPage {
		return c.wrong(id, "the bucket %q is no leaf", path[len(path)-1])
	}
	return c.leaf(id, value, path)
}

type element struct {
	flags      uint32
	key, value []byte
	child      uint64
}

// elements are those of a page, whose keys rise.
func (c *checker) elements(id uint64, b []byte, leaf bool) ([]element, error) {
	count := int(order.Uint16(b[10:]))
	if headerSize+count*elementSize > len(b) || count == 0 && !leaf {
		return nil, c.wrong(id, "it has %d entries in %d bytes", count, len(b))
	}
	list := make([]element, count)
	for i := range list {
		from := headerSize + i*elementSize
		at := b[from : from+elementSize]
		var e element
		var pos, key, value uint64
		if leaf {
			e.flags = order.Uint32(at)
			pos, key, value = uint64(order.Uint32(at[4:])), uint64(order.Uint32(at[8:])), uint64(order.Uint32(at[12:]))
		} else {
			pos, key, e.child = uint64(order.Uint32(at)), uint64(order.Uint32(at[4:])), order.Uint64(at[8:])
		}
		pos += uint64(from)
		if pos+key+value > uint64(len(b)) {
			return nil, c.wrong(id, "entry %d of %d lies outside of it", i, count)
		}
		e.key, e.value = b[pos:pos+key], b[pos+key:pos+key+value]
		if i > 0 && bytes.Compare(list[i-1].key, e.key) >= 0 {
			return nil, c.wrong(id, "entry %d of %d is out of order", i, count)
		}
		list[i] = e
	}
	return list, nil
}
