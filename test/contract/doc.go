// Package contract contains the promises of the end-to-end tests of Crossplane for packages, transcribed as terminal
// sessions against the manager of this repository. docs/compatibility.md lists the deliberate differences.
package contract
