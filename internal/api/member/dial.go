package member

import (
	"crypto/tls"
	"net/http"

	"scaffold.dev/scaffold/internal/api"
)

// Client reaches the endpoint in the name of who has the credentials; nil: in the clear. It connects on the first call, by
// dial where there is one. One that is impatient notices sooner that the controller has vanished: where there is another
// one, or another way to it, to go to.
func (c *Credentials) Client(endpoint string, dial api.DialFunc, impatient bool) (client *http.Client, err error) {
	var who *tls.Config
	if c != nil {
		if who, err = c.TLS(); err != nil {
			return nil, err
		}
	}
	if dial == nil {
		client, _, err = api.DialAs(endpoint, who)
	} else {
		var to api.Endpoint
		if to, err = api.ParseEndpoint(endpoint); err == nil {
			client = api.DialWith(to.As(who), dial)
		}
	}
	if err == nil && impatient {
		client = api.Impatient(client)
	}
	return client, err
}
