package ofp

// An Opt is a number that may be left out; its zero value leaves it out. On the wire a reserved number
// stands for that.
type Opt[T ~uint32] struct {
	Value T
	Set   bool
}

// Some is an Opt that is not left out.
func Some[T ~uint32](v T) Opt[T] { return Opt[T]{v, true} }

// absent is what most numbers are when left out: OFPP_ANY, OFPG_ANY, OFP_NO_BUFFER.
const absent = 0xffffffff

// opt32 is an Opt; none stands for its absence.
func opt32[T ~uint32](c *codec, p *Opt[T], none uint32) {
	v := T(none)
	if p.Set {
		v = p.Value
	}
	u32(c, &v)
	if !c.writing {
		*p = Opt[T]{}
		if uint32(v) != none {
			*p = Some(v)
		}
	}
}
