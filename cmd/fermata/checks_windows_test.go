package main

// exitWithFile ends with the status that the file says.
const exitWithFile = `for /f %i in (status) do exit %i`
