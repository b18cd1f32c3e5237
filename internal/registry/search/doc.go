// Package search finds candidates for a query in a database: an SQLite file with a full-text index. The database is disposable. It
// contains nothing that is not in the catalog from which it is built, and a missing, damaged or outdated file is built again.
//
//	catalog ──Sync──▶ documents: one for each package, one for each kind
//	query ──Search──▶ at most 1,000 candidates in the order of their static rank ──▶ [catalog.Catalog.Search] ──▶ hits
//
// The row numbers of documents are in the order of the static rank, so a query for a frequent word reads only the beginning of its
// list. The final order is that of the search without a server.
package search
