// Package docs is the documentation for users. The files in reference/ are
// generated from the code.
package docs

//go:generate go run ../internal/docs reference
