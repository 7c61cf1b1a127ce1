package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"path"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// OrderID is the header with a number that whoever orders something made up for it. The history keeps it with what was
// ordered, so that the order may be sent again where a controller died before it answered: the next one sees that it was
// carried out, and does not do it twice (docs/protocol.md §5.8).
const OrderID = "Scaffold-Order"

// orderBytes are as many as nobody guesses.
const orderBytes = 16

// once are the methods of which a controller looks the number up: each is one change of one service. What is made of
// several changes is compared with what is there each time, or answers with a secret.
var once = []string{
	apiv1connect.AdminCreateServiceProcedure, apiv1connect.AdminRemoveServiceProcedure, apiv1connect.AdminUpdatePolicyProcedure,
	apiv1connect.AdminUpdateAccessProcedure, apiv1connect.AdminSetWeightProcedure, apiv1connect.AdminSetWeightsProcedure, apiv1connect.AdminDrainProcedure,
}

// asking are the beginnings of methods that change nothing: to ask twice does no harm.
var asking = []string{"Get", "List", "Watch", "Explain", "Export", "Backup"}

// Asks reports whether a call changes nothing.
func Asks(procedure string) bool {
	method := path.Base(procedure)
	return slices.ContainsFunc(asking, func(a string) bool { return strings.HasPrefix(method, a) })
}

// NewOrderID makes a number.
func NewOrderID() string {
	var b [orderBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// OrderOf is the number of an order that is carried out once however often it is sent; "" of anything else.
func OrderOf(procedure string, h http.Header) string {
	id := h.Get(OrderID)
	if b, err := hex.DecodeString(id); err != nil || len(b) != orderBytes || !slices.Contains(once, procedure) {
		return ""
	}
	return id
}
