// Package certificates maintains the certificates of package runtimes: a CA Secret, and a Secret for each server
// and client. Names and keys are the same as in Crossplane, so that either manager can take over from the other.
//
// [Plan] derives the next steps from the Secrets. Each step is one write, guarded by the resource version that was
// read, so the work can stop at any point and can be shared by several processes. A new CA is trusted everywhere
// before it signs, and a former CA is trusted until no certificate that it signed is in use.
package certificates
