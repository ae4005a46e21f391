// Package ginreaders has the readers of Gin: see package readers.
package ginreaders

import (
	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/floodgate-go/floodgate/internal/readers"
)

// ByField are the readers of each field.
var ByField = map[string]map[string]func(*gin.Context) string{"username": All, "user[name]": Nested, "name": Path, "mail": Mail}

// All are the readers of the field username in Gin. Each reads the body once.
var All = map[string]func(*gin.Context) string{
	"PostForm":        func(c *gin.Context) string { return c.PostForm("username") },
	"DefaultPostForm": func(c *gin.Context) string { return c.DefaultPostForm("username", "") },
	"Query":           func(c *gin.Context) string { return c.Query("username") },
	"ShouldBind": func(c *gin.Context) string {
		var f readers.Form
		_ = c.ShouldBind(&f)
		return f.Username
	},
	"ShouldBind, embedded": func(c *gin.Context) string {
		var f readers.Credentials
		_ = c.ShouldBind(&f)
		return f.Username
	},
	"ShouldBind, inside a struct": func(c *gin.Context) string {
		var f struct {
			Form struct {
				Username string `form:"username"`
			}
		}
		_ = c.ShouldBind(&f)
		return f.Form.Username
	},
	"ShouldBind, inside a map": func(c *gin.Context) string {
		var f struct{ Form map[string]any }
		_ = c.ShouldBind(&f)
		name, _ := f.Form["username"].(string)
		return name
	},
	"ShouldBindQuery": func(c *gin.Context) string {
		var f readers.Form
		_ = c.ShouldBindQuery(&f)
		return f.Username
	},
	"ShouldBindJSON": func(c *gin.Context) string {
		var f readers.Form
		_ = c.ShouldBindJSON(&f)
		return f.Username
	},
	"ShouldBindXML":                func(c *gin.Context) string { return bound(c, binding.XML) },
	"ShouldBindYAML":               func(c *gin.Context) string { return bound(c, binding.YAML) },
	"ShouldBindTOML":               func(c *gin.Context) string { return bound(c, binding.TOML) },
	"binding.MsgPack":              func(c *gin.Context) string { return bound(c, binding.MsgPack) },
	"ShouldBindXML, other names":   func(c *gin.Context) string { return renamed(c, binding.XML) },
	"ShouldBindYAML, other names":  func(c *gin.Context) string { return renamed(c, binding.YAML) },
	"ShouldBindTOML, other names":  func(c *gin.Context) string { return renamed(c, binding.TOML) },
	"binding.MsgPack, other names": func(c *gin.Context) string { return renamed(c, binding.MsgPack) },
	"ShouldBind, a protobuf message": func(c *gin.Context) string {
		var m wrapperspb.StringValue
		_ = c.ShouldBind(&m)
		return m.GetValue()
	},
	"FormValue": func(c *gin.Context) string { return c.Request.FormValue("username") },
}

// Nested are the readers of the field user[name].
var Nested = map[string]func(*gin.Context) string{
	"PostForm":    func(c *gin.Context) string { return c.PostForm("user[name]") },
	"PostFormMap": func(c *gin.Context) string { return c.PostFormMap("user")["name"] },
	"QueryMap":    func(c *gin.Context) string { return c.QueryMap("user")["name"] },
	"ShouldBind": func(c *gin.Context) string {
		var f readers.Nested
		_ = c.ShouldBind(&f)
		return f.User.Name
	},
	"ShouldBindJSON": func(c *gin.Context) string {
		var f readers.Nested
		_ = c.ShouldBindJSON(&f)
		return f.User.Name
	},
}

// Path are the readers of the field name, which is in the object user in JSON.
var Path = map[string]func(*gin.Context) string{
	"the query before JSON": func(c *gin.Context) string {
		return readers.First(c.Query("name"), c.QueryMap("user")["name"], c.Query("user.name"), Nested["ShouldBindJSON"](c))
	},
}

// Mail are the readers of the field mail.
var Mail = map[string]func(*gin.Context) string{
	"PostForm": func(c *gin.Context) string { return c.PostForm("mail") },
	"ShouldBind": func(c *gin.Context) string {
		var f readers.Mail
		_ = c.ShouldBind(&f)
		return f.Mail
	},
}

// Query are the readers of the query parameter id.
var Query = map[string]func(*gin.Context) string{
	"Query": func(c *gin.Context) string { return c.Query("id") },
	"ShouldBindQuery": func(c *gin.Context) string {
		var q struct {
			ID string `form:"id"`
		}
		_ = c.ShouldBindQuery(&q)
		return q.ID
	},
}

// Cookies are the readers of the cookie sid.
var Cookies = map[string]func(*gin.Context) string{
	"Cookie": func(c *gin.Context) string {
		v, _ := c.Cookie("sid")
		return v
	},
}

func renamed(c *gin.Context, b binding.Binding) string {
	var f readers.Renamed
	_ = c.ShouldBindWith(&f, b)
	return f.Name()
}

func bound(c *gin.Context, b binding.Binding) string {
	var f readers.Form
	_ = c.ShouldBindWith(&f, b)
	return f.Username
}
