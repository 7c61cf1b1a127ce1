package labapi

import (
	"bytes"
	"encoding/json"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxMessage bounds what one message of a caller may have: a lab file, a result to be drawn, the standard input of a
// command, a piece of a recording.
const maxMessage = 64 << 20

// maxCall bounds all that a caller may send in one call: 64 MiB of a recording, which are a third more in JSON.
const maxCall = 96 << 20

// A codec writes fields by their names in the schema, those that are 0, too, as lab files and `-o json` have them. It reads
// strictly: a key that is misspelled would otherwise do nothing, and nobody would know.
type codec struct{ name string }

// Name is the part of the content type that chooses it.
func (c codec) Name() string { return c.name }

// Marshal takes messages of the schema.
func (codec) Marshal(v any) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(v.(proto.Message))
}

// Unmarshal takes no text for a message without fields.
func (codec) Unmarshal(text []byte, v any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return protojson.Unmarshal(text, v.(proto.Message))
}

// as makes a message of a value that has the same JSON: what a command prints is what a call answers, and a field that the
// schema does not have is an error.
func as[M proto.Message](m M, v any) (M, error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = protojson.Unmarshal(text, m)
	}
	return m, err
}

// back is the way back from a message to such a value.
func back(m proto.Message, v any) error {
	text, err := codec{}.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return err
}

// events sends what happens, as it happens, from whichever goroutine. Nobody hears of errors: who went away ends his
// context.
type events[E any] struct {
	mu  sync.Mutex
	out *connect.ServerStream[E]
}

func (e *events[E]) send(event *E) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.Send(event) //nolint:errcheck // said above
}
