package readers_test

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
)

// netNames are the readers of the field username in net/http. Each reads the body once.
var netNames = map[string]func(*http.Request) string{
	"FormValue":     func(r *http.Request) string { return r.FormValue("username") },
	"PostFormValue": func(r *http.Request) string { return r.PostFormValue("username") },
	"Form": func(r *http.Request) string {
		_ = r.ParseForm()
		return r.Form.Get("username")
	},
	"the last of Form": func(r *http.Request) string {
		_ = r.ParseMultipartForm(1 << 20)
		if all := r.Form["username"]; len(all) > 0 {
			return all[len(all)-1]
		}
		return ""
	},
	"Form, any case": func(r *http.Request) string {
		_ = r.ParseMultipartForm(1 << 20)
		for name, all := range r.Form {
			if strings.EqualFold(name, "username") && all[0] != "" {
				return all[0]
			}
		}
		return ""
	},
	"url.ParseQuery of any body": func(r *http.Request) string {
		all, _ := url.ParseQuery(string(readers.ReadAll(r.Body)))
		return all.Get("username")
	},
	"URL.Query": func(r *http.Request) string { return r.URL.Query().Get("username") },
	"AllowQuerySemicolons": func(r *http.Request) (name string) {
		http.AllowQuerySemicolons(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			name = r.FormValue("username")
		})).ServeHTTP(nil, r)
		return name
	},
	"MultipartReader": func(r *http.Request) string {
		parts, err := r.MultipartReader()
		if err != nil {
			return ""
		}
		for {
			part, err := parts.NextPart()
			if err != nil {
				return ""
			}
			if part.FormName() == "username" {
				return string(readers.ReadAll(part))
			}
		}
	},
	"json.Decoder": func(r *http.Request) string {
		var f readers.Form
		_ = json.NewDecoder(r.Body).Decode(&f)
		return f.Username
	},
	"json.Unmarshal into a map, a number": func(r *http.Request) string {
		m := map[string]any{}
		_ = json.Unmarshal(readers.ReadAll(r.Body), &m)
		if id, ok := m["username"].(float64); ok {
			return strconv.FormatFloat(id, 'f', -1, 64)
		}
		return ""
	},
	"json.Unmarshal into a map": func(r *http.Request) string {
		m := map[string]any{}
		_ = json.Unmarshal(readers.ReadAll(r.Body), &m)
		name, _ := m["username"].(string)
		return name
	},
	"xml.Decoder": func(r *http.Request) string {
		var f readers.Form
		_ = xml.NewDecoder(r.Body).Decode(&f)
		if !strings.Contains(r.Header.Get("Content-Type"), "xml") {
			return "" // no handler reads XML from another type
		}
		return f.Username
	},
}

// netNested are the readers of the field user[name].
var netNested = map[string]func(*http.Request) string{
	"FormValue":     func(r *http.Request) string { return r.FormValue("user[name]") },
	"PostFormValue": func(r *http.Request) string { return r.PostFormValue("user[name]") },
	"json.Decoder": func(r *http.Request) string {
		var f readers.Nested
		_ = json.NewDecoder(r.Body).Decode(&f)
		return f.User.Name
	},
}

// netPath are the readers of the field name, which is in the object user in JSON.
var netPath = map[string]func(*http.Request) string{
	"json.Decoder": netNested["json.Decoder"],
	"the query before JSON": func(r *http.Request) string {
		q := r.URL.Query()
		return readers.First(q.Get("name"), q.Get("user[name]"), q.Get("user.name"), netNested["json.Decoder"](r))
	},
}

// netMail are the readers of the field mail.
var netMail = map[string]func(*http.Request) string{
	"json.Decoder": func(r *http.Request) string {
		var f readers.Mail
		_ = json.NewDecoder(r.Body).Decode(&f)
		return f.Mail
	},
	"json.Decoder, lower case": func(r *http.Request) string { return cased(r, strings.ToLower, "mail") },
	"json.Decoder, capitals":   func(r *http.Request) string { return cased(r, strings.ToUpper, "MAIL") },
	"Form, lower case":         func(r *http.Request) string { return casedForm(r, strings.ToLower, "mail") },
	"Form, capitals":           func(r *http.Request) string { return casedForm(r, strings.ToUpper, "MAIL") },
}

// cased returns the member of a JSON object whose name has a spelling in which
// letter case is gone. It prefers those that are spelled otherwise.
func cased(r *http.Request, spell func(string) string, name string) string {
	m := map[string]string{}
	_ = json.Unmarshal(readers.ReadAll(r.Body), &m)
	return spelled(m, spell, name)
}

func casedForm(r *http.Request, spell func(string) string, name string) string {
	_ = r.ParseMultipartForm(1 << 20)
	m := map[string]string{}
	for key := range r.PostForm {
		m[key] = r.PostForm.Get(key)
	}
	return spelled(m, spell, name)
}

func spelled(m map[string]string, spell func(string) string, name string) string {
	found := ""
	for key, value := range m {
		// strings.ToLower makes two characters of an I with a dot.
		if strings.ReplaceAll(spell(key), "\u0307", "") == name && (found == "" || key != name) {
			found = value
		}
	}
	return found
}

// netQuery are the readers of the query parameter id.
var netQuery = map[string]func(*http.Request) string{
	"URL.Query": func(r *http.Request) string { return r.URL.Query().Get("id") },
}

// netCookies are the readers of the cookie sid.
var netCookies = map[string]func(*http.Request) string{
	"Cookie": func(r *http.Request) string {
		c, err := r.Cookie("sid")
		if err != nil {
			return ""
		}
		return c.Value
	},
}

var netHTTP = readers.Framework[*http.Request]{
	Name:    "net/http",
	ByField: map[string]map[string]func(*http.Request) string{"username": netNames, "user[name]": netNested, "name": netPath, "mail": netMail},
	Query:   netQuery, Cookies: netCookies,
	Serve: func(s *readers.Site, checker core.Checker, read func(*http.Request) string) func([]byte) {
		return readers.OverHTTP(httplimit.Middleware(checker)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.Saw(read(r))
			w.WriteHeader(s.Status(r.Method))
		})))
	},
}
