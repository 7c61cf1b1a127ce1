package tune

// A Binding is what keeps a stream from being faster.
type Binding uint8

// Bindings.
const (
	Unclear    Binding = iota
	Source             // the end host that sends has no more to send, or its own way to its agent carries no more
	Receiver           // the end host that receives takes no more
	Reading            // the processor of the agent beside the sender
	Writing            // the processor of the agent beside the receiver
	SendMemory         // memory of the agent beside the sender
	TakeMemory         // memory of the agent beside the receiver
	Between            // the path between the agents
)

// At is the binding in words, where the agent that reads and the one that writes have these names; "" for none that is clear.
func (b Binding) At(reads, writes string) string {
	switch b {
	case Source:
		return "source"
	case Receiver:
		return "receiver"
	case Reading:
		return reads
	case Writing:
		return writes
	case SendMemory:
		return reads + "'s memory"
	case TakeMemory:
		return writes + "'s memory"
	case Between:
		return "path"
	}
	return ""
}

func (b Binding) String() string { return b.At("reading agent", "writing agent") }

// A Side is what one agent knows of a stream.
type Side struct {
	Found Look    // of the bytes that it reads, or writes
	Busy  float64 // the share of the processors it may use that it has used of late, 0 to 1
}

// busy is from when on an agent's processor is what it waits for: what is left goes to looking and to the kernel.
const busy = 0.9

// Bind is what binds a stream, by what the agent knows that reads it from its sender, and the one that writes it to its
// receiver.
func Bind(reads, writes Side) Binding {
	switch reads.Found {
	case Host:
		return Source
	case Memory:
		return SendMemory
	case Processor:
		switch { // else one thread, or a lock, is what all wait for
		case writes.Busy >= busy && writes.Busy > reads.Busy:
			return Writing
		case reads.Busy >= busy:
			return Reading
		}
	case Credit:
		switch {
		case writes.Found == Host:
			return Receiver
		case writes.Busy >= busy:
			return Writing
		case writes.Found == Memory:
			return TakeMemory
		case writes.Found == Free: // the window is what the path has on its way, and the kernel takes it whole
			return Between
		}
	case Path: // whoever has no processor leaves bytes that wait for it to read or to write
		switch {
		case reads.Busy >= busy && reads.Busy >= writes.Busy:
			return Reading
		case writes.Busy >= busy:
			return Writing
		}
		return Between
	}
	return Unclear
}
