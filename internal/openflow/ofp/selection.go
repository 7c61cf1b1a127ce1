package ofp

// A Selection is how a select group of 1.5 chooses a bucket, by Netronome's extension, which Open
// vSwitch takes. SelectHash looks at Fields and draws a weighted lot that is fair for equal weights
// only; SelectDPHash looks at what the datapath hashes and gives each bucket of a table of 16 to 256
// slots as many as its weight asks for.
type Selection struct {
	Method string // up to 15 bytes
	Param  uint64 // dp_hash: 0, or 1 + the hash's number in its upper half, its seed in the lower
	Fields []OXM  // hash: each with a value whose set bits say which of the field's bits count
}

// The methods of Open vSwitch.
const (
	SelectHash   = "hash"
	SelectDPHash = "dp_hash"
)

// AllOf is an entry of Selection.Fields: all bits of the field count.
func AllOf(f Field) OXM {
	ones := make([]byte, f.Size())
	for i := range ones {
		ones[i] = 0xff
	}
	return Bytes(f, ones, nil)
}

const (
	methodLen       = 16
	selectionMethod = 1
)

// layoutSelection is what follows the buckets: properties, in 1.5 alone.
func layoutSelection(c *codec, s **Selection) {
	switch {
	case c.v < V15:
		c.only(V15, *s != nil, "how a select group selects")
	case c.writing && *s != nil:
		c.properties(experimental, func() { (*s).layout(c) })
	case !c.writing:
		c.properties(experimental, func() {
			if c.peek32(0) == netronome && c.peek32(4) == selectionMethod {
				*s = &Selection{}
				(*s).layout(c)
			}
		})
	}
}

func (s *Selection) layout(c *codec) {
	experimenter, kind := uint32(netronome), uint32(selectionMethod)
	u32(c, &experimenter)
	u32(c, &kind)
	c.pad(4)
	c.text(methodLen, &s.Method)
	if len(s.Method) >= methodLen { // it ends with a zero
		c.fail(ErrLength, "selection method %.20q has %d bytes, at most %d fit", s.Method, len(s.Method), methodLen-1)
	}
	u64(c, &s.Param)
	list(c, &s.Fields, func(o *OXM) { o.layout(c) })
}
