// Package bootstrap tells what a cluster needs so that the package manager runs in
// it: definitions, an identity with exactly the rights that it uses, and the manager
// itself.
//
// It is pure. The command prints or applies what it gives, and the Helm chart is
// generated from it.
package bootstrap
