package readers_test

import (
	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
)

// ginNames are the readers of the field username in Gin. Each reads the body once.
var ginNames = map[string]func(*gin.Context) string{
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

// ginNested are the readers of the field user[name].
var ginNested = map[string]func(*gin.Context) string{
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

// ginPath are the readers of the field name, which is in the object user in JSON.
var ginPath = map[string]func(*gin.Context) string{
	"the query before JSON": func(c *gin.Context) string {
		return readers.First(c.Query("name"), c.QueryMap("user")["name"], c.Query("user.name"), ginNested["ShouldBindJSON"](c))
	},
}

// ginMail are the readers of the field mail.
var ginMail = map[string]func(*gin.Context) string{
	"PostForm": func(c *gin.Context) string { return c.PostForm("mail") },
	"ShouldBind": func(c *gin.Context) string {
		var f readers.Mail
		_ = c.ShouldBind(&f)
		return f.Mail
	},
}

// ginQuery are the readers of the query parameter id.
var ginQuery = map[string]func(*gin.Context) string{
	"Query": func(c *gin.Context) string { return c.Query("id") },
	"ShouldBindQuery": func(c *gin.Context) string {
		var q struct {
			ID string `form:"id"`
		}
		_ = c.ShouldBindQuery(&q)
		return q.ID
	},
}

// ginCookies are the readers of the cookie sid.
var ginCookies = map[string]func(*gin.Context) string{
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

var inGin = readers.Framework[*gin.Context]{
	Name:    "Gin",
	ByField: map[string]map[string]func(*gin.Context) string{"username": ginNames, "user[name]": ginNested, "name": ginPath, "mail": ginMail},
	Query:   ginQuery, Cookies: ginCookies, UnescapesCookies: true,
	Serve: func(s *readers.Site, checker core.Checker, read func(*gin.Context) string) func([]byte) {
		gin.SetMode(gin.ReleaseMode)
		e := gin.New()
		e.NoRoute(ginlimit.Middleware(checker), func(c *gin.Context) { // any method, any path
			s.Saw(read(c))
			c.Status(s.Status(c.Request.Method))
			c.Writer.WriteHeaderNow()
		})
		return readers.OverHTTP(e)
	},
}
