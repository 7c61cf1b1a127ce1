package ofp

// An Instruction is a part of a flow: GotoTable, WriteMetadata, ApplyActions and the others here.
type Instruction interface{ kind() uint16 }

// GotoTable goes on with a later table.
type GotoTable struct{ Table uint8 }

// WriteMetadata writes the bits of the metadata that Mask has.
type WriteMetadata struct{ Metadata, Mask uint64 }

// WriteActions puts actions into the set that is done at the end of the pipeline.
type WriteActions struct{ Actions []Action }

// ApplyActions does actions at once.
type ApplyActions struct{ Actions []Action }

// ClearActions empties the set.
type ClearActions struct{}

// MeterInstruction lets a meter decide whether the packet goes on. It is 1.3's; 1.5 has the action.
type MeterInstruction struct{ ID MeterID }

// An OtherInstruction is one that this package leaves alone: Data is what follows type and length.
type OtherInstruction struct {
	Kind uint16
	Data []byte
}

// Apply is short for the instructions of a flow that only does actions.
func Apply(as ...Action) []Instruction { return []Instruction{ApplyActions{as}} }

func (GotoTable) kind() uint16          { return 1 }
func (WriteMetadata) kind() uint16      { return 2 }
func (WriteActions) kind() uint16       { return 3 }
func (ApplyActions) kind() uint16       { return 4 }
func (ClearActions) kind() uint16       { return 5 }
func (MeterInstruction) kind() uint16   { return 6 }
func (o OtherInstruction) kind() uint16 { return o.Kind }

const instructionMeter = 6

var instructions = map[uint16]func(*codec, Instruction) Instruction{
	1: both[GotoTable, *GotoTable, Instruction](),
	2: both[WriteMetadata, *WriteMetadata, Instruction](),
	3: both[WriteActions, *WriteActions, Instruction](),
	4: both[ApplyActions, *ApplyActions, Instruction](),
	5: both[ClearActions, *ClearActions, Instruction](),
	6: both[MeterInstruction, *MeterInstruction, Instruction](),
}

func (i *GotoTable) layout(c *codec)        { u8(c, &i.Table); c.pad(3) }
func (i *WriteActions) layout(c *codec)     { c.pad(4); layoutActions(c, &i.Actions) }
func (i *ApplyActions) layout(c *codec)     { c.pad(4); layoutActions(c, &i.Actions) }
func (*ClearActions) layout(c *codec)       { c.pad(4) }
func (i *MeterInstruction) layout(c *codec) { u32(c, &i.ID) }

func (i *WriteMetadata) layout(c *codec) {
	c.pad(4)
	u64(c, &i.Metadata)
	u64(c, &i.Mask)
}

// layoutInstructions is a list of instructions that goes to the end of the record.
func layoutInstructions(c *codec, is *[]Instruction) {
	list(c, is, func(i *Instruction) {
		c.rounded(2, func() { c.instruction(i) })
	})
}

func (c *codec) instruction(i *Instruction) {
	var kind uint16
	if c.writing {
		if *i == nil {
			c.fail(ErrUnsayable, "an instruction that is nil")
			return
		}
		kind = (*i).kind()
	}
	u16(c, &kind)
	c.length()
	layout := instructions[kind]
	if c.v >= V15 && kind == instructionMeter {
		layout = nil
	}
	other, isOther := (*i).(OtherInstruction)
	switch {
	case c.err != nil:
	case c.writing && layout == nil && !isOther:
		c.fail(ErrUnsayable, "the instruction %T in %v", *i, c.v)
	case layout != nil && !isOther:
		*i = layout(c, *i)
	default:
		other.Kind = kind
		c.raw(&other.Data)
		*i = other
	}
}
