-- The file is bursar's from here on ("BURS"). Inside the transaction that makes its tables.
pragma application_id = 1112887891;
