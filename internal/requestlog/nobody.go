package requestlog

import "errors"

// ErrNoBody is the error of Request.Body of a remote procedure call: a call has messages,
// and no body in which a key function could look for a field.
var ErrNoBody = errors.New("floodgate: a remote procedure call has no body that a key function can read")

// NoBodyKey is the key under which the request of a remote procedure call has ErrNoBody, for
// key functions that leave bodies of some types unread.
type NoBodyKey struct{}
