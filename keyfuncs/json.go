package keyfuncs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// maxDepth is how deep a JSON body may be nested.
const maxDepth = 64

var errNotJSON = errors.New("keyfuncs: not JSON, or nested too deeply")

// jsonValue reads the value at a path of a JSON object (RFC 8259). The body is
// read token by token, so that a name that stands twice is seen.
func jsonValue(body []byte, path []string) (string, error) {
	p := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(body)), path: path}
	p.UseNumber()
	err := p.value(0, true)
	if err == nil {
		if _, err = p.Token(); errors.Is(err, io.EOF) {
			return p.text(), nil
		}
	}
	if errors.Is(err, core.ErrBadRequest) {
		return "", err
	}
	return "", nil // malformed, or with something behind it: no value
}

type jsonReader struct {
	*json.Decoder
	path  []string
	field once
}

func (p *jsonReader) text() string { return p.field.value }

// value reads one value. onPath says that the objects around it are those of
// the path: at depth d, the first d names.
func (p *jsonReader) value(depth int, onPath bool) error {
	token, err := p.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if nested {
		if depth == maxDepth {
			return errNotJSON
		}
		if delim == '[' {
			return p.array(depth)
		}
		return p.object(depth, onPath && depth < len(p.path)) // an object is no value
	}
	if onPath && depth == len(p.path) {
		return p.field.set(scalar(token))
	}
	return nil
}

func (p *jsonReader) array(depth int) error {
	for p.More() {
		if err := p.value(depth+1, false); err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

func (p *jsonReader) object(depth int, onPath bool) error {
	found := false
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return errNotJSON
		}
		if err := p.field.field(); err != nil {
			return err
		}
		match := onPath && strings.EqualFold(name, p.path[depth])
		if match && found {
			return fmt.Errorf("%w: the field stands twice", core.ErrBadRequest)
		}
		found = found || match
		if err := p.value(depth+1, match); err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

// scalar returns the text of a string, a number or a boolean, "" for null.
func scalar(token json.Token) string {
	switch v := token.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
