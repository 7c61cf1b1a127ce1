package labapi

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// Content types by what they begin with.
var (
	kinds       = []string{"application/json", "application/proto", "application/grpc"}
	streamKinds = []string{"application/connect+json", "application/connect+proto", "application/grpc"}
)

// check says in words what the generated handlers say by a status alone: that there is no such call, or that its content
// type is another, which curl makes a form's where it is not told.
func check(r *http.Request) error {
	dir, name := path.Split(r.URL.Path)
	call := labv1.File_lab_proto.Services().Get(0).Methods().ByName(protoreflect.Name(name))
	if dir != Path || call == nil {
		return connect.NewError(connect.CodeUnimplemented, fmt.Errorf("%s: there is no such call; docs/lab-api.md says where they are listed", r.URL.Path))
	}
	kind, want := r.Header.Get("Content-Type"), kinds
	if call.IsStreamingServer() || call.IsStreamingClient() {
		want = streamKinds
	}
	if r.Method == http.MethodPost && !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(kind, w) }) {
		return bad("%s: content type %q: expected %s; docs/lab-api.md shows calls and streams", name, kind, want[0])
	}
	return nil
}
