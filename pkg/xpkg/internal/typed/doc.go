// Package typed compares JSON with the Go type that an API server decodes it into. Unlike a decoder, it continues after
// a value of the wrong type, and reports the path of each one.
package typed
