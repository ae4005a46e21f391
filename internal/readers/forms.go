// Package readers compares the value that a handler has read from a request with the one that was
// counted, for requests that hide one value behind another.
//
// The tests describe each framework as a [Framework]: the binders and the shortcuts by which its
// handlers read a value. These readers ignore errors, as the most careless handler does.
package readers

import "io"

// Form is what the binders bind to.
type Form struct {
	Username string `form:"username" json:"username" query:"username" xml:"username" yaml:"username" toml:"username" codec:"username"`
	Password string `form:"password" json:"password" query:"password" xml:"password" yaml:"password" toml:"password"`
}

// Credentials is a form with its fields in an embedded struct.
type Credentials struct {
	Form
	Remember bool `form:"remember" json:"remember" query:"remember"`
}

// Nested is a form whose username is a field of another object.
type Nested struct {
	User struct {
		Name string `form:"name" query:"name" json:"name"`
	} `form:"user" query:"user" json:"user"`
}

// Mail is a form with a field in whose name letter case is not simple: an i has other capitals in
// Turkish.
type Mail struct {
	Mail string `form:"mail" json:"mail" query:"mail"`
}

// Renamed is a form whose fields have other names in documents that the guard cannot read.
type Renamed struct {
	Login     string `xml:"login" yaml:"login" toml:"login" codec:"login"`
	Attribute string `xml:"login,attr" yaml:"-" toml:"-" codec:"-"`
}

// Name returns the username, of whichever field.
func (r *Renamed) Name() string { return First(r.Login, r.Attribute) }

// Cookies is what cookies are bound to.
type Cookies struct {
	Session string `cookie:"sid"`
}

// First returns the first text that is not empty.
func First(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// ReadAll reads a body, up to an error.
func ReadAll(r io.Reader) []byte {
	b, _ := io.ReadAll(r)
	return b
}
