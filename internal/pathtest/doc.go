// Package pathtest sends odd spellings of paths to an application and compares
// the handler that answered with the policies that counted the request.
//
// The application mounts the policies of File and the handlers of Routes. Each
// handler answers with its name; the response headers name the policies.
package pathtest
