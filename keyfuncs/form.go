package keyfuncs

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
)

// maxFields is the maximum number of fields in a body.
const maxFields = 1000

// once holds the value of a field that may be given only once.
type once struct {
	value string
	found bool
	count int // fields seen
}

// field counts a field with any name.
func (o *once) field() error {
	if o.count++; o.count > maxFields {
		return faultMany
	}
	return nil
}

// set sets the value of the wanted field.
func (o *once) set(value string) error {
	if o.found {
		return faultTwice
	}
	o.value, o.found = value, true
	return nil
}

// formValue returns the value of the field in a body of type
// application/x-www-form-urlencoded (URL standard, section 5.1). It returns an error if
// the field has a malformed escape or a semicolon, because net/url drops such a field
// and fasthttp reads it.
func formValue(body []byte, name *spelling) (string, error) {
	var o once
	for part := range strings.SplitSeq(string(body), "&") {
		if part == "" {
			continue
		}
		if err := o.field(); err != nil {
			return "", err
		}
		key, value, _ := strings.Cut(part, "=")
		key, keyOK := decode(key)
		if !name.matches(key) {
			if value, _ := decode(value); name.deep && name.isMember(value) {
				return "", faultUnreadable
			}
			continue
		}
		value, valueOK := decode(value)
		if !keyOK || !valueOK || strings.Contains(part, ";") {
			return "", faultEscape
		}
		if err := o.set(value); err != nil {
			return "", err
		}
	}
	return o.value, nil
}

// multipartValue returns the value of the field in a body of type multipart/form-data
// (RFC 7578). If the body is malformed, it returns faultUnreadable and the value that it
// has found before that.
func multipartValue(body []byte, boundary string, name *spelling) (string, error) {
	if boundary == "" {
		return "", faultUnreadable
	}
	var o once
	file := false
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextPart() // as net/http reads it
		switch {
		case err == io.EOF && !file: //nolint:errorlint // a wrapped EOF is not the end of the form
			return o.value, nil
		case err != nil:
			return o.value, faultUnreadable
		}
		if err := o.field(); err != nil {
			return "", err
		}
		if !name.matches(part.FormName()) {
			if name.deep && part.FileName() == "" {
				if value, err := io.ReadAll(part); err != nil || name.isMember(string(value)) {
					return "", faultUnreadable
				}
			}
			continue
		}
		var value []byte
		if part.FileName() != "" {
			file = true
		} else if value, err = io.ReadAll(part); err != nil { // the body is in memory, and its length is bounded
			return "", faultUnreadable
		}
		if err := o.set(string(value)); err != nil {
			return "", err
		}
	}
}

// rawBoundary returns the boundary that fasthttp finds in a Content-Type. fasthttp
// reads the header's parameters in another way than package mime.
func rawBoundary(contentType string) string {
	rest, found := strings.CutPrefix(contentType, "multipart/form-data;")
	for found {
		var parameter string
		parameter, rest, found = strings.Cut(rest, ";")
		value, named := strings.CutPrefix(strings.TrimLeft(parameter, " "), "boundary")
		if !named {
			continue
		}
		value, named = strings.CutPrefix(value, "=")
		if !named {
			return ""
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value
	}
	return ""
}

// isUnreadable reports whether a handler may read a body that this package cannot read.
func isUnreadable(err error) bool { return errors.Is(err, faultUnreadable) }
