-- Ends a merchant's hold. ?1 merchant
delete from merchant_hold where merchant = ?1;
