// Package certificates keeps the certificates of packages' programs: an authority in
// a Secret, and a Secret for each server and client, with the names and keys of
// Crossplane, so that either can take over from the other.
//
// What is to be done follows from what the Secrets hold ([Plan]), one write at a
// time, each guarded by the version that was read. It can be stopped anywhere and
// done by several at once. A new authority is trusted everywhere before anything is
// signed by it, and an old one is trusted until nothing that it signed is in use.
package certificates
