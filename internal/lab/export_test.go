package lab

// Machine is for the tests that run the whole product, which cannot be in this package.
var Machine = machine
